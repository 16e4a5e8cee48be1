//! Any stream: accepted frames decode, and their values survive a round trip.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::parser(data));
