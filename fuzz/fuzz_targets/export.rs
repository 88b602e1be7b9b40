//! Fuzzes exports of whole traces: see `reports::exports`.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use lowmark_fuzz::numbers::mutate;

fuzz_target!(|data: &[u8]| lowmark_fuzz::run(lowmark_fuzz::reports::exports, data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
