//! Any stream in any pieces: the same frames and errors as a recursive model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::parser_split(data));
