//! Fuzzes the reader of events as JSON: see `harness::event_json`.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|data: &[u8]| lowmark_fuzz::run(lowmark_fuzz::harness::event_json, data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let changed = match seed % 4 {
        0 => lowmark_fuzz::numbers::change(data, size, seed / 4),
        _ => None,
    };
    changed.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
