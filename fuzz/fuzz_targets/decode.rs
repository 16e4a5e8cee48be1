//! Any bytes as a reply that nobody validated: no panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::resp::fuzzing::decode(data));
