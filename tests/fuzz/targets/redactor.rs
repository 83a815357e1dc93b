//! Fuzzes `cloudwit_fuzz_bodies::host::redactor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::host::redactor(data));
