//! Any stream in any pieces: the same frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::parser_split(data));
