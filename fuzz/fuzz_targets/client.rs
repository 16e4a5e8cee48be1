//! Any legal sequence of operations on a client: calls end once and truly, nothing is left behind.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    respiral::client::fuzzing::operations(data, std::time::Instant::now());
});
