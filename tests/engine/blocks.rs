//! Receiving into blocks: in order with what comes through buffers, whatever the timing.

use crate::harness::*;
use respiral::buf::Block;
use respiral::engine::{Engine, EngineKind};
use respiral::io::{ConnectionFailure, Op};
use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Blocks are asked for at odd moments, in odd sizes, while three peers write.
pub fn blocks_and_buffers_in_turn(kind: EngineKind) {
    const LEN: usize = 1_500_007;
    let (listener, _) = listen();
    for (buffers, size) in [(1, 64), (8, 1024), (64, 16_384)] {
        let mut host = Host::with(&options(kind).buffer_count(buffers).buffer_size(size));
        let peers = host.pairs(3, &listener);
        let writers: Vec<_> = peers
            .into_iter()
            .map(|mut peer| {
                in_thread(move || {
                    for start in (0..LEN).step_by(30_011) {
                        peer.write_all(&pattern(start, 30_011.min(LEN - start))).unwrap();
                    }
                    peer
                })
            })
            .collect();
        let mut turn = 0;
        let start = now();
        while host.seen.values().any(|seen| seen.received.len() < LEN) {
            assert!(start.elapsed() < LIMIT, "hangs");
            turn += 1;
            for (index, count) in [(0, 1), (1, 5000), (2, 200_000)] {
                let left = LEN - host.seen[&id(index, 0)].received.len();
                if left > 0 && (turn + usize::from(index)) % 3 != 0 {
                    host.fill(id(index, 0), count.min(left));
                }
            }
            if !host.turn() {
                host.park(20 * MS);
            }
        }
        for seen in host.seen.values() {
            assert!(seen.filled > 0 && seen.received == pattern(0, LEN), "bytes overtook each other");
        }
        host.close_all();
        writers.into_iter().for_each(|writer| drop(writer.join().unwrap()));
        host.finish();
    }
}

/// A receive is armed and has data, when the block is asked for.
pub fn what_comes_before_a_block_ends_first(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(256));
    let mut peer = host.pair(id(0, 0), &listener);
    for (round, len) in [1, 100, 256, 257, 1024, 5000, 100_000].into_iter().enumerate() {
        let start = host.seen[&id(0, 0)].received.len();
        peer.write_all(&pattern(start, len)).unwrap();
        if round % 2 == 0 {
            std::thread::sleep(MS);
        }
        host.fill(id(0, 0), len);
        host.until(|host| host.seen[&id(0, 0)].received.len() == start + len);
        assert_eq!(host.seen[&id(0, 0)].received, pattern(0, start + len));
    }
    // A block that is still to be filled takes what comes later, to the byte.
    let start = host.seen[&id(0, 0)].received.len();
    host.fill(id(0, 0), 10);
    host.idle(5 * MS);
    let filled = host.seen[&id(0, 0)].filled;
    peer.write_all(&pattern(start, 30)).unwrap();
    host.until(|host| host.seen[&id(0, 0)].received.len() == start + 30);
    assert!(host.seen[&id(0, 0)].filled > filled);
    assert_eq!(host.seen[&id(0, 0)].received, pattern(0, start + 30));
    host.close_all();
    host.finish();
}

/// All buffers are held: a block is filled all the same, and the others wait on.
pub fn a_block_needs_no_buffer(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(2).buffer_size(64));
    let mut peers = host.pairs(2, &listener);
    host.hold = true;
    for peer in &mut peers {
        peer.write_all(&pattern(0, 1000)).unwrap();
    }
    host.until(|host| host.held.len() == 2);
    host.idle(20 * MS);
    let before = host.seen[&id(0, 0)].received.len();
    host.fill(id(0, 0), 1000 - before);
    host.until(|host| host.seen[&id(0, 0)].received.len() == 1000);
    assert_eq!(host.seen[&id(0, 0)].received, pattern(0, 1000));
    assert!(host.seen[&id(1, 0)].received.len() <= 128);
    host.hold = false;
    host.held.clear();
    host.until(|host| host.seen[&id(1, 0)].received.len() == 1000);
    // The first one receives on, through buffers.
    peers[0].write_all(&pattern(1000, 500)).unwrap();
    host.until(|host| host.seen[&id(0, 0)].received.len() == 1500);
    host.close_all();
    host.finish();
}

pub fn a_stream_ends_in_a_block(kind: EngineKind) {
    let (listener, _) = listen();
    for len in [0, 1, 700, 50_000] {
        let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(512));
        let mut peer = host.pair(id(0, 0), &listener);
        host.fill(id(0, 0), 100_000);
        peer.write_all(&pattern(0, len)).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        host.until(|host| {
            // What came is told first; then the core asks for the rest, or does not.
            host.seen[&id(0, 0)].failed.is_some()
        });
        let seen = &host.seen[&id(0, 0)];
        assert_eq!(
            (seen.failed.clone(), &seen.received),
            (Some(ConnectionFailure::ClosedByPeer), &pattern(0, len))
        );
        host.close_all();
        host.finish();
    }
}

/// The kernel may write to the block until it is cancelled; nothing of it is told after `Closed`.
pub fn a_block_is_closed_with_its_connection(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(512));
    for round in 0..200 {
        let at = id(0, round);
        let mut peer = host.pair(at, &listener);
        host.fill(at, 100_000);
        if round % 4 < 2 {
            host.engine.flush().unwrap();
        }
        peer.write_all(&pattern(0, 3000)).unwrap();
        if round % 4 == 3 {
            host.turn();
        }
        host.close(at);
        host.until(|host| host.seen[&at].closed);
        host.seen.remove(&at);
    }
    // And with the engine itself.
    let at = id(0, 1000);
    let _peer = host.pair(at, &listener);
    host.fill(at, 100_000);
    host.engine.flush().unwrap();
    let mut told = Vec::new();
    host.engine.close(&mut told);
    host.note(told);
    assert!(host.seen[&at].closed);
}

pub fn a_block_of_nobody_is_dropped(kind: EngineKind) {
    let mut host = Host::new(kind);
    host.engine.submit(Op::Fill { id: id(3, 9), block: Block::new(Vec::new(), 10) });
    host.idle(5 * MS);
    let mut told = Vec::new();
    host.engine.close(&mut told);
    host.engine.submit(Op::Fill { id: id(3, 9), block: Block::new(Vec::new(), 10) });
    host.engine.poll(8, &mut told).unwrap();
    assert!(told.is_empty(), "{told:?}");
}

/// The receive that a flush arms finds no buffer: the return of one has to wake the host.
pub fn h16_starved_at_the_flush(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(1).buffer_size(64));
    let mut peer = host.pair(id(0, 0), &listener);
    host.fill(id(0, 0), 10);
    host.idle(5 * MS);
    peer.write_all(&pattern(0, 10)).unwrap();
    host.until(|host| host.seen[&id(0, 0)].received.len() == 10);
    host.idle(5 * MS);
    host.hold = true;
    peer.write_all(&pattern(10, 200)).unwrap();
    // As the driver does: turn (poll, flush), and park when the engine agrees.
    let start = now();
    while host.held.is_empty() {
        assert!(start.elapsed() < LIMIT);
        let more = host.turn();
        if host.held.is_empty() && !more {
            host.park(LIMIT);
        }
    }
    // (epoll tells of the rest once more before it takes the connection out.)
    while !host.engine.may_park().unwrap() {
        assert!(start.elapsed() < LIMIT, "nothing can happen without a buffer");
        host.turn();
    }
    host.hold = false;
    host.held.clear();
    assert!(host.wait(Duration::from_millis(500)), "the return of the buffer woke nobody");
    host.until(|host| host.seen[&id(0, 0)].received.len() == 210);
    host.close_all();
    host.finish();
}

/// A second block while the kernel may write to the first: it is dropped, not the first.
pub fn a_second_block_is_dropped(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let mut peer = host.pair(id(0, 0), &listener);
    host.fill(id(0, 0), 4000);
    host.idle(5 * MS);
    host.engine.submit(Op::Fill { id: id(0, 0), block: Block::new(Vec::new(), 4000) });
    // Whoever allocates next would get the memory of the first.
    let others: Vec<Vec<u8>> = (0..64).map(|_| vec![0xEE; 4000]).collect();
    host.engine.flush().unwrap();
    peer.write_all(&pattern(0, 8000)).unwrap();
    host.until(|host| host.seen[&id(0, 0)].received.len() == 8000);
    assert!(others.iter().flatten().all(|byte| *byte == 0xEE), "the kernel wrote to memory of others");
    assert_eq!(host.seen[&id(0, 0)].received, pattern(0, 8000));
    // A block of nothing is no end of stream.
    host.engine.submit(Op::Fill { id: id(0, 0), block: Block::new(Vec::new(), 0) });
    host.idle(5 * MS);
    assert_eq!(host.seen[&id(0, 0)].failed, None);
    host.close_all();
    host.finish();
}
