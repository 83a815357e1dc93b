//! Fuzzes `cloudwit_fuzz_bodies::host::conversions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::host::conversions(data));
