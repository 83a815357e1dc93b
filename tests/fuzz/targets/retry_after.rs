//! Fuzzes `cloudwit_fuzz_bodies::host::retry_after`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::host::retry_after(data));
