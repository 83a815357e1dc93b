//! Fuzzes `cloudwit_fuzz_bodies::sdk::cidr`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::sdk::cidr(data));
