//! Fuzzes `cloudwit_fuzz_bodies::manager::proxy_headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::manager::proxy_headers(data));
