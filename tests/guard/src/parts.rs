//! The parser and the encoder alone.

use respiral::buf::Log;
use respiral::resp::{Encoder, Limits, Scan, Scanner, ToArgs};
use std::hint::black_box;

/// Finds the end of one frame.
pub fn parse(frame: &[u8]) -> Box<dyn FnMut()> {
    let (frame, mut scanner) = (frame.to_vec(), Scanner::new(Limits::default(), true));
    Box::new(move || {
        let scan = scanner.advance(black_box(&frame)).unwrap();
        assert!(matches!(scan, Scan::Complete { consumed, .. } if consumed == frame.len()));
    })
}

fn encode(write: impl Fn(&mut Encoder<'_>) + 'static) -> Box<dyn FnMut()> {
    let mut log = Log::new(64 * 1024);
    Box::new(move || {
        let mut encoder = Encoder::new(&mut log);
        write(black_box(&mut encoder));
        assert!(encoder.is_whole());
        log.release(log.end());
    })
}

const KEY: &[u8] = b"key:12345678";

/// Writes `GET key`.
pub fn encode_get() -> Box<dyn FnMut()> {
    encode(|encoder| {
        encoder.begin_with(b"*2\r\n$3\r\nGET\r\n", 1);
        encoder.arg(black_box(KEY));
    })
}

/// Writes `SET key value`, with a value of 64 bytes.
pub fn encode_set() -> Box<dyn FnMut()> {
    encode(|encoder| {
        encoder.begin_with(b"*3\r\n$3\r\nSET\r\n", 2);
        encoder.arg(black_box(KEY));
        encoder.arg(black_box(&[b'v'; 64]));
    })
}

/// Writes `MGET` of 16 keys.
pub fn encode_mget() -> Box<dyn FnMut()> {
    encode(|encoder| {
        encoder.begin(17);
        encoder.arg(b"MGET");
        black_box([KEY; 16]).write(encoder);
    })
}
