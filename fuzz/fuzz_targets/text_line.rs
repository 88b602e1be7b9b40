//! Fuzzes the reader of lines of text, and the texts of events: see `harness::text_line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(
    lowmark_fuzz::harness::text_line,
    data
));
