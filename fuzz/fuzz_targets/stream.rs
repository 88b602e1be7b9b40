//! Fuzzes the reader of whole inputs, compressed or not: see `harness::stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(lowmark_fuzz::harness::stream, data));
