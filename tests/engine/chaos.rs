//! Random operations against random peers, with few buffers and small queues. The harness checks the order of what is
//! told, this file the bytes: each side hears a prefix of what the other said, and no more than `Sent` admits.

use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// xorshift64: the seed decides everything but the kernel's timing.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

const PLACES: u16 = 12;

#[derive(Default)]
struct Peer {
    stream: Option<TcpStream>,
    generation: u32,
    open: bool,
    wrote: usize,
    heard: usize,
    /// It has been told of a reset, and is told only once.
    cut: bool,
}

impl Peer {
    fn write(&mut self, len: usize) {
        let Some(stream) = &mut self.stream else { return };
        match stream.write(&pattern(self.wrote, len)) {
            Ok(count) => self.wrote += count,
            Err(e) => self.cut |= e.kind() != ErrorKind::WouldBlock,
        }
    }

    fn read(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut block = [0; 8192];
        loop {
            match stream.read(&mut block) {
                Ok(0) => return,
                Ok(count) => {
                    assert!(block[..count] == pattern(self.heard, count), "the peer heard something else");
                    self.heard += count;
                }
                Err(e) => {
                    self.cut |= e.kind() != ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }
}

pub fn chaos(kind: EngineKind) {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=24).collect(),
    };
    for seed in seeds {
        println!("SEED={seed}");
        one_run(kind, seed);
    }
}

fn one_run(kind: EngineKind, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (buffers, size) = [(1, 64), (4, 128), (16, 1024), (64, 4096)][dice.roll(4)];
    let (entries, completions) = [(1, 8), (8, 8), (128, 512)][dice.roll(3)];
    let options = options(kind).buffer_count(buffers).buffer_size(size);
    let host = Host::with(&options.entries(entries).completion_entries(completions));
    let mut host = if dice.roll(2) == 0 { host } else { host.edge_triggered() };
    let (listener, address) = listen();
    let mut peers: Vec<Peer> = (0..PLACES).map(|_| Peer::default()).collect();
    for _ in 0..400 {
        let index = dice.roll(usize::from(PLACES));
        let peer = &mut peers[index];
        let at = id(index as u16, peer.generation);
        match dice.roll(16) {
            0..3 if !peer.open => {
                let generation = peer.generation + 1;
                host.connect(id(index as u16, generation), address);
                host.engine.flush().unwrap();
                let (stream, _) = listener.accept().unwrap();
                stream.set_nonblocking(true).unwrap();
                *peer = Peer { stream: Some(stream), generation, open: true, ..Peer::default() };
            }
            3..6 if peer.open && host.seen[&at].owed == 0 && host.seen[&at].failed.is_none() => {
                let offered = host.seen[&at].sent.iter().sum();
                let len = [0, 1, 100, 10_000, 3_000_000][dice.roll(5)];
                let chunk = [7, 4096, 1 << 20][dice.roll(3)].max(len / 2000 + 1);
                host.send(at, transmit(&pattern(offered, len), chunk));
            }
            6 if peer.open => {
                host.close(at);
                if dice.roll(2) == 0 {
                    peer.write(5000);
                }
                finish(&mut host, peer, at);
            }
            7..10 => peer.write([1, 50, 3000, 100_000][dice.roll(4)]),
            10..12 => peer.read(),
            12 if dice.roll(4) == 0 => peer.stream = None,
            13 if dice.roll(4) == 0 => {
                if let Some(stream) = peer.stream.take() {
                    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                }
            }
            15 if peer.open => host.fill(at, [1, 30, 5000, 200_000][dice.roll(4)]),
            14 => {
                host.hold = dice.roll(3) == 0;
                if !host.hold {
                    host.held.clear();
                }
            }
            _ => host.budget = [1, 3, 64][dice.roll(3)],
        }
        for _ in 0..dice.roll(3) {
            host.turn();
        }
        if dice.roll(8) == 0 {
            host.park(Duration::from_micros(300));
        }
    }
    // At the end all is heard, or the engine goes with everything in flight.
    host.held.clear();
    host.hold = false;
    if dice.roll(4) > 0 {
        for (index, peer) in peers.iter_mut().enumerate() {
            let at = id(index as u16, peer.generation);
            if peer.open {
                host.close(at);
                finish(&mut host, peer, at);
            }
        }
        host.finish();
    } else {
        let mut told = Vec::new();
        host.engine.close(&mut told);
        host.note(told);
        assert!(host.seen.values().all(|seen| seen.closed));
    }
}

/// After `Closed` the counts are final.
fn finish(host: &mut Host, peer: &mut Peer, at: respiral::io::ConnectionId) {
    host.until(|host| host.seen[&at].closed);
    peer.open = false;
    let seen = &host.seen[&at];
    let taken: usize = seen.sent.iter().sum();
    assert!(seen.received.len() <= peer.wrote);
    assert!(seen.received == pattern(0, seen.received.len()), "we heard something else");
    let Some(stream) = &mut peer.stream else { return };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest);
    assert!(rest == pattern(peer.heard, rest.len()), "the peer heard something else");
    peer.heard += rest.len();
    match end {
        // Nothing unread on our side: TCP delivers every byte that the kernel took.
        Ok(_) => assert!(peer.heard == taken || peer.cut, "{} of {taken} bytes arrived", peer.heard),
        // Our side left bytes unread, so its close was a reset.
        Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset),
    }
    assert!(peer.heard <= taken);
    peer.stream = None;
}
