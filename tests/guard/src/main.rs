//! Pieces of the hot path, each run so many times: for a tool that counts instructions.
//!
//! ```text
//! guard PIECE TIMES      prints the heap allocations of the last half of the runs
//! guard list             prints the pieces
//! ```
//! One run is one operation, except where a piece says otherwise. Nothing here does I/O or depends on time.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a measurement, not the library")]

mod client;
mod parts;

use respiral_testkit::alloc_count;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

/// A piece: made once, then run again and again.
type Piece = (&'static str, fn() -> Box<dyn FnMut()>);

/// Operations that are in flight together in the pieces of the client.
const CALLERS: usize = 64;

const PIECES: &[Piece] = &[
    ("parse bulk 64 B", || parts::parse(&bulk(64))),
    ("parse bulk 16 KiB", || parts::parse(&bulk(16 * 1024))),
    ("parse integer", || parts::parse(b":1234567890\r\n")),
    ("parse array of 16", || parts::parse(&[b"*16\r\n".to_vec(), bulk(64).repeat(16)].concat())),
    ("parse map of 32", || parts::parse(&[b"%32\r\n".to_vec(), bulk(10).repeat(64)].concat())),
    ("encode GET", parts::encode_get),
    ("encode SET", parts::encode_set),
    ("encode MGET 16", parts::encode_mget),
    ("client GET in place", || client::run(client::Kind::Blob, 1)),
    ("client GET String", || client::run(client::Kind::Text, 1)),
    ("client GET Vec<u8>", || client::run(client::Kind::Bytes, 1)),
    // Loops that walk all connections show here.
    ("client GET in place, 16 connections", || client::run(client::Kind::Blob, 16)),
    ("client GET in place, 4096 connections", || client::run(client::Kind::Blob, 4096)),
    ("client MGET 16 in place", || client::run(client::Kind::List, 1)),
    ("client INCR", || client::run(client::Kind::Number, 1)),
    ("client SET", || client::run(client::Kind::Ok, 1)),
];

fn bulk(len: usize) -> Vec<u8> {
    [format!("${len}\r\n").as_bytes(), &vec![b'v'; len], b"\r\n"].concat()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, times] = &args[..] else {
        return PIECES.iter().for_each(|(name, _)| println!("{name}"));
    };
    let times: usize = times.parse().expect("a number of runs");
    let (_, make) = PIECES.iter().find(|(known, _)| known == name).expect("`guard list` tells the pieces");
    let mut piece = make();
    (0..times / 2).for_each(|_| black_box(&mut piece)());
    let counts = alloc_count::measure(|| (0..times / 2).for_each(|_| black_box(&mut piece)()));
    println!("{}", counts.allocations);
}
