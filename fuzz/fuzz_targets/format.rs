//! Fuzzes the reader of the kernel's texts of formats: see `harness::format`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowmark_fuzz::run(lowmark_fuzz::harness::format, data));
