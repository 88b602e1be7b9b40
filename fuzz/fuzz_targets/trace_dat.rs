//! Fuzzes the reader of trace.dat files: see `harness::trace_dat`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(
    lowmark_fuzz::harness::trace_dat,
    data
));
