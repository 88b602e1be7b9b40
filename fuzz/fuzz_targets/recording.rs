//! Fuzzes reports and exports of recordings: see `reports::recording`.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use lowmark_fuzz::numbers::mutate;

fuzz_target!(|data: &[u8]| lowmark_fuzz::run(lowmark_fuzz::reports::recording, data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
