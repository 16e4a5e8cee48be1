//! Any stream in one piece: the same frames, values and errors as a recursive model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::parser(data));
