//! How fast replies are found in received bytes, and decoded, in bytes per second.
//!
//! ```text
//! cargo bench --manifest-path benches/parser/Cargo.toml
//! ```
//! Each shape fills 1 MiB, which a second-level cache holds. Beside the scanner stand two that do less: `memchr`, which looks
//! for every `\n` of the same bytes, and `sum`, which only reads them.
//!
//! A bulk string is skipped by its length: the scanner does not touch its bytes. So on large ones its figure is no speed of
//! reading, it says how much it passes over in the time of a few headers, and exceeds what memory gives. Where replies are
//! short, the opposite: `memchr` is asked for each `\n` and stops at each, as the scanner does.
#![allow(missing_docs, clippy::unwrap_used, reason = "a measurement")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use respiral::resp::{Decoder, FromReply, Limits, Scan, Scanner};
use std::hint::black_box;
use std::time::Duration;

const BYTES: usize = 1 << 20;

fn bulk(len: usize) -> Vec<u8> {
    [format!("${len}\r\n").as_bytes(), &vec![b'v'; len], b"\r\n"].concat()
}

/// As many of one reply as fit.
fn fill(reply: &[u8]) -> Vec<u8> {
    reply.repeat(BYTES / reply.len())
}

fn shapes() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("bulk 16 B", fill(&bulk(16))),
        ("bulk 64 B", fill(&bulk(64))),
        ("bulk 1 KiB", fill(&bulk(1 << 10))),
        ("bulk 16 KiB", fill(&bulk(16 << 10))),
        ("integer", fill(b":1234567890\r\n")),
        ("array of 16 x 64 B", fill(&[b"*16\r\n".to_vec(), bulk(64).repeat(16)].concat())),
        ("map of 32 x 2 x 16 B", fill(&[b"%32\r\n".to_vec(), bulk(16).repeat(64)].concat())),
    ]
}

fn scan(scanner: &mut Scanner, mut bytes: &[u8]) -> usize {
    let mut frames = 0;
    while !bytes.is_empty() {
        let Scan::Complete { consumed, .. } = scanner.advance(bytes).unwrap() else { unreachable!("whole") };
        bytes = &bytes[consumed..];
        frames += 1;
    }
    frames
}

/// Every reply of the bytes, one after the other.
fn decode<T: FromReply>(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    while decoder.remaining() > 0 {
        black_box(T::from_reply(&mut decoder).unwrap());
    }
}

fn find(criterion: &mut Criterion) {
    for (name, bytes) in shapes() {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut scanner = Scanner::new(Limits::default(), true);
        group.bench_function("scanner", |bencher| bencher.iter(|| scan(&mut scanner, black_box(&bytes))));
        group.bench_function("memchr", |bencher| {
            bencher.iter(|| memchr::memchr_iter(b'\n', black_box(&bytes)).fold(0, |sum, at| sum ^ at));
        });
        group.bench_function("sum", |bencher| {
            bencher.iter(|| black_box(&bytes).iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
        });
        group.finish();
    }
}

fn own(criterion: &mut Criterion) {
    for (name, bytes) in shapes().into_iter().filter(|(name, _)| name.starts_with("bulk")) {
        let mut group = criterion.benchmark_group(format!("{name}, owned"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("Vec<u8>", |bencher| bencher.iter(|| decode::<Vec<u8>>(black_box(&bytes))));
        // It must be valid UTF-8, so it is read once more.
        group.bench_function("String", |bencher| bencher.iter(|| decode::<String>(black_box(&bytes))));
        group.finish();
    }
    let integers = fill(b":1234567890\r\n");
    let mut group = criterion.benchmark_group("integer, decoded");
    group.throughput(Throughput::Bytes(integers.len() as u64));
    group.bench_function("i64", |bencher| bencher.iter(|| decode::<i64>(black_box(&integers))));
    group.finish();
}

fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = parser; config = brief(); targets = find, own }
criterion_main!(parser);
