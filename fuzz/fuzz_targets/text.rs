//! Connection strings, errors of servers, names of commands.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| respiral::client::fuzzing::text(data));
