//! Any bytes as a reply, validated or not, as each type.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    respiral::resp::fuzzing::decode(data);
    respiral::command::fuzzing::decode(data);
});
