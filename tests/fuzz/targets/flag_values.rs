//! Fuzzes `cloudwit_fuzz_bodies::manager::flag_values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudwit_fuzz_bodies::manager::flag_values(data));
