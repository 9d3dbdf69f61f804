#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seckill_http::fuzzing::token(bytes));
