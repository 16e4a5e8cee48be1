use crate::harness::*;
use respiral::buf::{Log, Transmit};
use respiral::engine::{Engine, EngineKind};
use socket2::SockRef;
use std::io::{Read, Write};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Reads to the end; the bytes must follow the pattern. How many there were.
fn read_pattern(peer: &mut impl Read) -> usize {
    let mut block = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        match peer.read(&mut block) {
            Ok(0) => return total,
            Ok(count) => {
                assert!(block[..count] == pattern(total, count), "bytes differ around {total}");
                total += count;
            }
            Err(e) => panic!("{e} after {total} bytes"),
        }
    }
}

pub fn h26_close_tells_exactly_what_was_taken(kind: EngineKind) {
    const OFFERED: usize = 16 << 20;
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    for (generation, chunk) in [(0, OFFERED), (1, 64 * 1024), (2, 1 << 20)] {
        for wait in [0, 1, 30] {
            let a = id(wait, generation);
            let mut peer = host.pair(a, &listener);
            host.send(a, transmit(&pattern(0, OFFERED), chunk));
            if wait > 0 {
                host.idle(u32::from(wait) * MS);
            }
            host.close(a);
            host.until(|host| host.seen[&a].closed);
            let taken = host.seen[&a].sent[0];
            assert!(taken < OFFERED, "the socket was full");
            assert_eq!(read_pattern(&mut peer), taken);
        }
    }
    host.finish();
}

pub fn h27_slices_outlive_their_release(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    SockRef::from(&peer).set_recv_buffer_size(256 * 1024).unwrap();
    const EACH: usize = 1 << 20;
    let reader = in_thread(move || {
        pause(20 * MS);
        read_pattern(&mut peer)
    });
    let mut log = Log::new(64 * 1024);
    for round in 0..8 {
        log.append(&pattern(round * EACH, EACH));
        let mut data = Transmit::new();
        log.slices((round * EACH) as u64, log.end(), &mut data);
        host.send(a, data);
        host.turn();
        // A reply overtook the completion: the owner lets go of the bytes, and writes more into the log.
        log.release(log.end());
        log.append(&pattern((round + 1) * EACH, EACH / 2));
        host.until(|host| host.seen[&a].owed == 0);
        log = Log::new(64 * 1024);
        // Same offsets as before, in fresh memory: what the kernel read was the old one.
        log.append(&vec![0xEE; (round + 1) * EACH]);
        log.release(log.end());
    }
    host.close_all();
    assert_eq!(reader.join().unwrap(), 8 * EACH);
    assert_eq!(host.seen[&a].sent, [EACH; 8]);
    host.finish();
}

pub fn h28_much_over_a_slow_reader(kind: EngineKind) {
    const TOTAL: usize = 64 << 20;
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    let reader = in_thread(move || {
        SockRef::from(&peer).set_recv_buffer_size(64 * 1024).unwrap();
        for _ in 0..20 {
            pause(2 * MS);
            let mut some = [0; 1024];
            // Left to the pattern check below: only a peek, to be slow.
            let _ = peer.peek(&mut some);
        }
        read_pattern(&mut peer)
    });
    for at in (0..TOTAL).step_by(1 << 20) {
        host.send(a, transmit(&pattern(at, 1 << 20), 256 * 1024));
        host.until(|host| host.seen[&a].owed == 0);
    }
    host.close_all();
    assert_eq!(reader.join().unwrap(), TOTAL);
    assert_eq!(host.seen[&a].sent, [1 << 20; 64]);
    host.finish();
}

pub fn h28_one_large_chunk(kind: EngineKind) {
    const TOTAL: usize = 64 << 20;
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    let reader = in_thread(move || {
        // Slow: the send waits for room hundreds of times.
        let mut some = [0; 16 * 1024];
        let mut heard = 0;
        while heard < TOTAL / 4 {
            let count = peer.read(&mut some).unwrap();
            assert!(some[..count] == pattern(heard, count));
            heard += count;
        }
        let mut rest = vec![0; TOTAL - heard];
        peer.read_exact(&mut rest).unwrap();
        assert!(rest == pattern(heard, TOTAL - heard));
        heard + rest.len() + read_pattern(&mut peer)
    });
    host.send(a, transmit(&pattern(0, TOTAL), TOTAL));
    host.until(|host| host.seen[&a].owed == 0);
    assert_eq!(kernel_threads(), 0, "the kernel went on in a thread of its own (H30)");
    assert_eq!(host.seen[&a].sent, [TOTAL]);
    host.close_all();
    assert_eq!(reader.join().unwrap(), TOTAL);
    host.finish();
}

pub fn more_slices_than_one_call_takes(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    let data = transmit(&pattern(0, 50_000), 16);
    assert!(data.len() > 3 * 1024);
    let reader = in_thread(move || read_pattern(&mut peer));
    host.send(a, data);
    host.until(|host| host.seen[&a].owed == 0);
    host.close_all();
    assert_eq!(reader.join().unwrap(), 50_000);
    host.finish();
}

pub fn an_empty_send(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let _peer = host.pair(id(0, 0), &listener);
    for _ in 0..3 {
        host.send(id(0, 0), Transmit::new());
        host.until(|host| host.seen[&id(0, 0)].owed == 0);
    }
    assert_eq!(host.seen[&id(0, 0)].sent, [0; 3]);
    host.finish();
}

/// The engine's part of H32: receiving goes on while a send is stuck.
pub fn h32_both_sides_write(kind: EngineKind) {
    const EACH: usize = 16 << 20;
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(8).buffer_size(4096));
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    // A server that writes its whole reply before it reads.
    let server = in_thread(move || {
        peer.write_all(&pattern(0, EACH)).unwrap();
        read_pattern(&mut peer)
    });
    host.send(a, transmit(&pattern(0, EACH), 1 << 20));
    host.until(|host| host.seen[&a].owed == 0 && host.seen[&a].received.len() == EACH);
    assert_eq!(host.seen[&a].received, pattern(0, EACH));
    host.close_all();
    assert_eq!(server.join().unwrap(), EACH);
    host.finish();
}

pub fn a_reset_peer_ends_the_send(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let peer = host.pair(a, &listener);
    host.send(a, transmit(&pattern(0, 16 << 20), 1 << 20));
    host.idle(20 * MS);
    SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    host.until(|host| host.seen[&a].failed.is_some() && host.seen[&a].owed == 0);
    let seen = &host.seen[&a];
    assert!(seen.sent[0] < 16 << 20, "{seen:?}");
    host.send(a, transmit(b"too late", 16));
    host.until(|host| host.seen[&a].owed == 0);
    assert_eq!(host.seen[&a].sent[1], 0);
    assert!(host.engine.may_park().unwrap());
    host.finish();
}
