//! Fuzzes the reader of pages of the ring buffer: see `harness::ring_buffer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(
    lowmark_fuzz::harness::ring_buffer,
    data
));
