//! Fuzzes `cloudwit_fuzz_bodies::sdk::yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::sdk::yaml(data));
