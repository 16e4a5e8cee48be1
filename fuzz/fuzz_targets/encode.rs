//! Choices, out of which commands and a value are made: what is encoded is read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::encode(data));
