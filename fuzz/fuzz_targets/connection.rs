//! Any legal sequence of operations on a connection: it does what a naive model does.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    respiral::connection::fuzzing::operations(data, std::time::Instant::now());
});
