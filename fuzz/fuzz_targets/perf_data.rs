//! Fuzzes the reader of perf.data files: see `harness::perf_data`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(
    lowmark_fuzz::harness::perf_data,
    data
));
