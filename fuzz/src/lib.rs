//! What the fuzz targets share: the [`harness`] of the readers, that of the [`reports`], and the canary that proves that the alarm works.

pub mod harness;
pub mod numbers;
pub mod reports;

/// A report is made of many small texts.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One in so many inputs is reported on a second time. The tests do it with all.
pub const SECOND_TIME_EVERY: u8 = 8;

/// One execution of a target.
pub fn run(target: harness::Target, data: &[u8]) {
    target(data, &mut look);
}

#[cfg(not(feature = "canary"))]
fn look(_: u64) {}

/// The canary: a place outside of a table, which a number in the input chooses; one number in 2,039 does. Seen in
/// the input is the number only by the reader that has understood what stands before it.
#[cfg(feature = "canary")]
fn look(value: u64) {
    let table = [0u8; 8];
    let place = value % 2_039;
    if place == harness::CANARY {
        std::hint::black_box(table[std::hint::black_box(place) as usize]);
    }
}
