use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use respiral::io::{Address, Completion, Op, SocketOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// What the peer hears until the end of the stream; a reset is an end too.
fn hear_the_end(peer: &mut TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    peer.set_read_timeout(Some(LIMIT)).unwrap();
    match peer.read_to_end(&mut heard) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        Err(e) => panic!("no end: {e}"),
    }
    heard
}

pub fn h2_nothing_is_written_after_drop(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(16).buffer_size(4096));
    let mut peers = host.pairs(4, &listener);
    peers[0].write_all(b"before").unwrap();
    host.until(|host| !host.seen[&id(0, 0)].received.is_empty());
    let pool = host.engine.pool().clone();
    // What a host may forget: descriptors of ours.
    let dups = [host.engine.wake_fd().unwrap(), host.engine.notifier().unwrap()];
    drop(host);
    let mut buffers: Vec<_> = std::iter::from_fn(|| pool.take_free()).collect();
    assert_eq!(buffers.len(), 16, "all buffers are free");
    for buffer in &mut buffers {
        buffer.bytes().fill(0xA5);
    }
    for peer in &mut peers {
        for _ in 0..10 {
            let _ = peer.write_all(&[0x5A; 4096]);
        }
        assert_eq!(hear_the_end(peer), b"");
    }
    pause(10 * MS);
    for buffer in &mut buffers {
        assert!(buffer.bytes().iter().all(|byte| *byte == 0xA5), "the kernel wrote after the end");
    }
    drop(dups);
}

/// How many connections "thousands" are: two descriptors each. `CONNECTIONS` asks for others.
fn thousands() -> u16 {
    std::env::var("CONNECTIONS").map_or(4000, |text| text.parse().unwrap())
}

/// Connections `0..count` of a generation, and the peers' ends.
fn many_pairs(host: &mut Host, count: u16, generation: u32) -> Vec<TcpStream> {
    let (listener, address) = listen();
    let armed = host.engine.counters().receives_armed;
    let mut peers = Vec::new();
    for start in (0..count).step_by(100) {
        let batch = start..(start + 100).min(count);
        for index in batch.clone() {
            host.connect(id(index, generation), address);
        }
        host.engine.flush().unwrap();
        peers.extend(batch.map(|_| listener.accept().unwrap().0));
    }
    host.until(|host| host.seen.values().all(|seen| seen.connected));
    // With fewer buffers than connections they begin to receive in several turns.
    host.until(|host| host.engine.counters().receives_armed - armed >= u64::from(count));
    peers
}

/// H3: one cancel for each operation, named by its `user_data`, in batches. (Naming the descriptor, or all at once, makes
/// the kernel search: quadratic, a second for ten thousand.)
pub fn h3_thousands_are_closed(kind: EngineKind) {
    let count = thousands();
    let mut host = Host::new(kind);
    host.budget = 1000;
    let mut peers = many_pairs(&mut host, count, 0);
    let before = host.engine.counters();
    let start = now();
    let mut told = Vec::new();
    host.engine.close(&mut told);
    let after = host.engine.counters();
    let (calls, completions) =
        (after.kernel_entries - before.kernel_entries, after.completions - before.completions);
    println!("{count} closed in {:?}: {calls} calls, {completions} completions", start.elapsed());
    assert_eq!(told.len(), usize::from(count));
    if kind == EngineKind::Uring {
        // A few calls per batch, and none per connection; a receive's end and its cancel's per connection, and no more.
        assert!(calls < u64::from(count) / 8, "{calls} calls of io_uring_enter");
        assert!(completions <= 2 * u64::from(count) + 8, "{completions} completions");
    }
    host.note(told);
    assert!(host.seen.values().all(|seen| seen.closed));
    for peer in &mut peers {
        assert_eq!(hear_the_end(peer), b"");
    }
}

/// H40: all peers go at once, which is several times what the completion queue holds; every end is told, and the places are
/// used again.
pub fn h40_thousands_of_ends_at_once(kind: EngineKind) {
    let count = thousands() / 2;
    let mut host = Host::new(kind);
    for generation in 0..2 {
        let mut peers = many_pairs(&mut host, count, generation);
        // The last words of each come with its end.
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&pattern(at, 40)).unwrap();
        }
        drop(peers);
        host.until(|host| host.seen.values().all(|seen| seen.failed.is_some()));
        let mut words: Vec<_> = host.seen.values().map(|seen| seen.received.clone()).collect();
        let mut expected: Vec<_> = (0..usize::from(count)).map(|at| pattern(at, 40)).collect();
        words.sort();
        expected.sort();
        assert!(words == expected, "words are lost");
        host.close_all();
        host.seen.clear();
    }
    host.finish();
}

pub fn h6_segments_outlive_the_engine(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let mut peer = host.pair(id(0, 0), &listener);
    host.hold = true;
    peer.write_all(&pattern(0, 1000)).unwrap();
    host.until(|host| host.seen[&id(0, 0)].received.len() == 1000);
    let held = std::mem::take(&mut host.held);
    drop(host);
    let bytes: Vec<u8> = held.iter().flat_map(|segment| segment.to_vec()).collect();
    assert_eq!(bytes, pattern(0, 1000));
    // The last one may go anywhere, even after thread-local storage: it needs none.
    thread_local!(static LAST: std::cell::RefCell<Vec<respiral::buf::Segment>> = const { std::cell::RefCell::new(Vec::new()) });
    in_thread(move || {
        let (listener, _) = listen();
        let mut host = Host::new(kind);
        host.hold = true;
        let mut peer = host.pair(id(0, 0), &listener);
        peer.write_all(b"last words").unwrap();
        host.until(|host| !host.held.is_empty());
        LAST.with_borrow_mut(|last| last.append(&mut host.held));
    })
    .join()
    .unwrap();
}

pub fn h29_no_byte_reaches_another_server(kind: EngineKind) {
    let (first, _) = listen();
    let (second, second_address) = listen();
    // A Unix socket is connected the moment it is made: the most tempting target for a number that is free too early.
    let path = std::env::temp_dir().join(format!("respiral-h29-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let unix = UnixListener::bind(&path).unwrap();
    let mut host = Host::new(kind);
    for generation in 0..1000 {
        let (a, b, c) = (id(0, generation), id(1, generation), id(2, generation));
        let mut at_first = host.pair(a, &first);
        // In one turn: a send to the first is queued, the first is closed, the others are dialled.
        host.send(a, transmit(b"for the first", 64));
        host.close(a);
        host.connect_to(c, Address::Unix(path.as_path().into()), SocketOptions::default());
        host.connect(b, second_address);
        host.until(|host| [a, b, c].iter().all(|id| host.seen[id].closed || host.seen[id].connected));
        host.until(|host| host.seen[&a].closed);
        let (mut at_second, _) = second.accept().unwrap();
        let (mut at_unix, _) = unix.accept().unwrap();
        let heard = hear_the_end(&mut at_first);
        assert_eq!(heard.len(), host.seen[&a].sent[0]);
        assert_eq!(heard, b"for the first"[..heard.len()]);
        host.close(b);
        host.close(c);
        host.until(|host| host.seen.values().all(|seen| seen.closed));
        assert_eq!(hear_the_end(&mut at_second), b"");
        let mut heard = Vec::new();
        at_unix.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"");
        host.seen.clear();
    }
    host.finish();
    std::fs::remove_file(&path).unwrap();
}

pub fn h30_no_thread_is_started(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    for generation in 0..1000 {
        let a = id(generation % 7, u32::from(generation));
        let mut peer = host.pair(a, &listener);
        peer.write_all(b"+OK\r\n").unwrap();
        host.send(a, transmit(b"PING\r\n", 64));
        if generation % 50 == 0 {
            host.until(|host| host.seen[&a].owed == 0);
            // Large enough to be stuck until the close.
            host.send(a, transmit(&vec![1; 8 << 20], 1 << 20));
        }
        host.turn();
        host.close(a);
        host.until(|host| host.seen[&a].closed);
    }
    assert_eq!(kernel_threads(), 0);
    host.finish();
    assert_eq!(kernel_threads(), 0);
}

pub fn close_answers_what_is_owed(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let mut peers = host.pairs(5, &listener);
    for index in 0..5 {
        host.send(id(index, 0), transmit(&pattern(0, 16 << 20), 1 << 20));
    }
    host.idle(20 * MS);
    let mut told = Vec::new();
    host.engine.close(&mut told);
    host.note(told);
    for (index, peer) in peers.iter_mut().enumerate() {
        let seen = &host.seen[&id(index as u16, 0)];
        assert!(seen.closed);
        assert_eq!(hear_the_end(peer).len(), seen.sent[0]);
    }
    let mut again = Vec::new();
    host.engine.close(&mut again);
    assert!(again.is_empty(), "{again:?}");
}

pub fn close_while_data_flows(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(8).buffer_size(1024));
    for generation in 0..20 {
        let peers: Vec<_> = (0..4).map(|index| host.pair(id(index, generation), &listener)).collect();
        let writers: Vec<_> = peers
            .into_iter()
            .map(|mut peer| in_thread(move || while peer.write_all(&[3; 10_000]).is_ok() {}))
            .collect();
        host.idle(2 * MS);
        host.close_all();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(host.engine.pool().lent(), 0);
    }
    host.finish();
}

pub fn closing_sends_a_fin(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let mut peer = host.pair(id(0, 0), &listener);
    host.engine.submit(Op::Close { id: id(0, 0) });
    let mut told: Vec<Completion> = Vec::new();
    while told.is_empty() {
        host.engine.flush().unwrap();
        host.engine.poll(8, &mut told).unwrap();
    }
    assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0, "a FIN, no reset");
    host.note(told);
    host.finish();
}
