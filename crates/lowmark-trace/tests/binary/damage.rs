//! Files cut off at every byte and with every byte changed, forged sizes, random bytes: never a panic,
//! never more than could be in a file of that size.

use crate::perf;
use crate::trace::{MACHINES, buffers, read};
use crate::writer::{Codec, Cpu, Lost, PAGE, PC, Page, file_6, file_7};
use lowmark_trace::format::{Format, parse_fields};
use lowmark_trace::ring_buffer::{Layout, events};
use proptest::prelude::*;

/// Every record takes 8 bytes at least: its word and one of data.
fn records_max(file: &[u8], codec: Codec) -> u64 {
    let pages = if codec == Codec::None {
        file.len()
    } else {
        64 * PAGE
    };
    pages as u64 / 8
}

fn check(file: &[u8], codec: Codec) {
    if let Ok((seen, account)) = read(file) {
        assert_eq!(seen.len() as u64, account.records);
        assert!(account.records <= records_max(file, codec), "{account:?}");
    }
}

fn all_files() -> Vec<(Vec<u8>, Codec)> {
    let six = MACHINES.map(|machine| (file_6(machine, &buffers(machine), &[]), Codec::None));
    let codecs = [Codec::None, Codec::Zlib, Codec::Zstd];
    let seven = codecs.map(|codec| (file_7(PC, codec, &buffers(PC)), codec));
    six.into_iter().chain(seven).collect()
}

#[test]
fn a_trace_dat_cut_at_every_byte() {
    for (file, codec) in all_files() {
        let mut most = 0;
        for end in 0..file.len() {
            check(&file[..end], codec);
            if let Ok((seen, account)) = read(&file[..end]) {
                assert!(seen.len() >= most, "a longer piece gives no less");
                assert!(
                    account.truncated.is_some() || account.records == 9,
                    "{end}: {account:?}"
                );
                most = seen.len();
            }
        }
    }
}

#[test]
fn a_trace_dat_with_every_byte_changed() {
    for (mut file, codec) in all_files() {
        for at in 0..file.len() {
            let was = file[at];
            for byte in [0, 0xff, was ^ 1, was ^ 0x80, was.wrapping_add(1)] {
                file[at] = byte;
                check(&file, codec);
            }
            file[at] = was;
        }
    }
}

#[test]
fn a_perf_data_cut_and_changed_at_every_byte() {
    for mut file in perf::all_files() {
        for end in 0..file.len() {
            let _ = perf::read(&file[..end]);
        }
        for at in 0..file.len() {
            let was = file[at];
            for byte in [0, 0xff, was ^ 1, was ^ 0x80, was.wrapping_add(1)] {
                file[at] = byte;
                if let Ok((seen, account)) = perf::read(&file) {
                    assert_eq!(seen.len() as u64, account.records);
                    assert!(account.records <= file.len() as u64 / 16);
                }
            }
            file[at] = was;
        }
    }
}

/// Where the table of CPUs of the main buffer stands in a v6 file.
fn table(file: &[u8]) -> usize {
    memchr::memmem::find(file, b"flyrecord\0").expect("a tag") + 10
}

#[test]
fn data_of_cpus_that_overlap_are_refused() {
    let mut file = file_6(PC, &buffers(PC), &[]);
    let table = table(&file);
    for cpu in 0..2 {
        file[table + 16 * cpu..][..8].copy_from_slice(&0u64.to_le_bytes());
        file[table + 16 * cpu + 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    }
    let error = read(&file).expect_err("forged").to_string();
    assert!(error.contains("the data of all CPUs together"), "{error}");
}

#[test]
fn data_behind_the_end_are_missing_and_not_looked_for() {
    let mut file = file_6(PC, &buffers(PC), &[]);
    let table = table(&file);
    file[table..table + 8].copy_from_slice(&(u64::MAX - 5).to_le_bytes());
    let (seen, account) = read(&file).expect("the other CPUs");
    assert_eq!(seen.len(), 5);
    assert_eq!(
        account.truncated.map(|flaw| flaw.offset),
        Some(file.len() as u64)
    );
}

#[test]
fn chunks_that_claim_too_much_are_left_out() {
    let file = file_7(PC, Codec::Zstd, &buffers(PC));
    // The first chunk of CPU 0 of the main buffer holds two pages; its size follows two other words.
    let size = ((2 * PAGE) as u32).to_le_bytes();
    let mut places = (8..file.len() - 4).step_by(PAGE);
    let at = places
        .find(|at| file[*at..*at + 4] == size)
        .expect("a chunk");
    for claimed in [u32::MAX, 8 << 20, (2 * PAGE) as u32 - 1] {
        let mut file = file.clone();
        file[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        let (_, account) = read(&file).expect("the rest");
        assert_eq!((account.records, account.damaged), (6, 1), "{account:?}");
        let flaw = account.first_damage.expect("said where");
        assert_eq!(flaw.offset, at as u64 - 4);
    }
}

#[test]
fn a_page_that_claims_too_much_gives_what_it_has() {
    let mut page = Page::new(PC, 1000)
        .event(1, 7, 0)
        .event(1, 7, 1)
        .finish(Lost::No);
    page[8..12].copy_from_slice(&0xf_ffffu32.to_le_bytes());
    let pages = vec![page];
    let buffers = [crate::writer::Buffer {
        name: "",
        cpus: vec![Cpu { cpu: 0, pages }],
    }];
    let (seen, account) = read(&file_6(PC, &buffers, &[])).expect("a file");
    assert_eq!(
        seen.iter().map(|seen| seen.3).take(2).collect::<Vec<_>>(),
        [0, 1]
    );
    assert!(account.damaged > 0);
}

proptest! {
    #[test]
    fn any_bytes_as_a_page(bytes in proptest::collection::vec(any::<u8>(), 0..512), long in 0..2usize) {
        for machine in MACHINES {
            let layout = Layout::of_long(machine.endian, 4 + 4 * long);
            if let Ok(events) = events(&layout, &bytes) {
                prop_assert!(events.count() <= bytes.len() / 4 + 1);
            }
        }
    }

    #[test]
    fn any_text_as_a_format(text in ".{0,400}") {
        let _ = Format::parse("any", &text);
        let _ = parse_fields(&text);
    }

    #[test]
    fn any_print_fmt(print in "([-(){},\"|& ~<>+*/0-9a-zéR]|REC->|__print_flags\\(|__print_symbolic\\(){0,200}") {
        let text = format!("name: x\nID: 1\nprint fmt: {print}");
        let format = Format::parse("any", &text).expect("a format");
        let size: usize = format.tables().map(|(_, table)| table.entries.len()).sum();
        prop_assert!(size <= print.len());
    }

    #[test]
    fn any_bytes_behind_a_good_begin(bytes in proptest::collection::vec(any::<u8>(), 0..400), keep in 10..1200usize) {
        for (file, codec) in [(file_6(PC, &buffers(PC), &[]), Codec::None), (file_7(PC, Codec::Zlib, &buffers(PC)), Codec::Zlib)] {
            let mut file = file[..keep.min(file.len())].to_vec();
            file.extend(&bytes);
            check(&file, codec);
        }
    }
}
