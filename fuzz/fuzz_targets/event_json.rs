//! Fuzzes the reader of events as JSON: see `harness::event_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(
    lowmark_fuzz::harness::event_json,
    data
));
