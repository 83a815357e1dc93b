//! Fuzzes `cloudwit_fuzz_bodies::host::special_addresses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::host::special_addresses(data));
