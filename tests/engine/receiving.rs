use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use respiral::io::ConnectionFailure;
use socket2::SockRef;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

pub fn h16_a_returned_buffer_wakes_a_starved_engine(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(1024));
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    host.hold = true;
    peer.write_all(&pattern(0, 8 * 1024)).unwrap();
    host.until(|host| host.held.len() == 4);
    host.idle(50 * MS);
    assert_eq!(host.held.len(), 4);
    for buffers in 5..=8 {
        assert!(host.engine.may_park().unwrap());
        assert!(!host.wait(Duration::ZERO), "nothing happened yet");
        host.held.remove(0);
        assert!(host.wait(LIMIT), "the return of a buffer wakes the host");
        host.until(|host| host.seen[&a].received.len() >= buffers * 1024);
        host.idle(5 * MS);
    }
    assert_eq!(host.seen[&a].received, pattern(0, 8 * 1024));
    host.finish();
}

pub fn h19_many_connections_share_four_buffers(kind: EngineKind) {
    const COUNT: u16 = 1000;
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(1024));
    let mut peers = host.pairs(COUNT, &listener);
    let before = host.engine.counters();
    for peer in &mut peers {
        peer.write_all(b"+PONG\r\n").unwrap();
    }
    host.until(|host| host.seen.values().all(|seen| seen.received.len() == 7));
    let after = host.engine.counters();
    let (armed, starved) =
        (after.receives_armed - before.receives_armed, after.starvations - before.starvations);
    assert!(armed <= 2 * u64::from(COUNT), "{armed} receives were armed");
    assert!(starved <= 2 * u64::from(COUNT), "{starved} starvations");
    // And again, so that nobody was forgotten.
    for peer in &mut peers {
        peer.write_all(b"+PONG\r\n").unwrap();
    }
    host.until(|host| host.seen.values().all(|seen| seen.received == b"+PONG\r\n+PONG\r\n"));
    host.finish();
}

pub fn h19_no_spinning_while_starved(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(4).buffer_size(64));
    let mut peers = host.pairs(50, &listener);
    host.hold = true;
    for peer in &mut peers {
        peer.write_all(b"+PONG\r\n").unwrap();
    }
    host.until(|host| host.held.len() == 4);
    host.idle(20 * MS);
    let entries = host.engine.counters().kernel_entries;
    let turns = host.idle(100 * MS);
    let entries = host.engine.counters().kernel_entries - entries;
    assert!(turns <= 4, "{turns} turns while nothing could happen");
    assert!(entries <= 4 + 2 * turns as u64, "{entries} system calls while nothing could happen");
    // Peers may even go: still nothing to do without a buffer.
    drop(peers.split_off(25));
    host.idle(20 * MS);
    let turns = host.idle(100 * MS);
    assert!(turns <= 4, "{turns} turns while nothing could happen");
    host.hold = false;
    host.held.clear();
    host.until(|host| host.seen.values().all(|seen| seen.received.len() == 7));
    host.until(|host| host.seen.values().filter(|seen| seen.failed.is_some()).count() == 25);
    host.finish();
}

pub fn h20_more_than_the_pool_flows(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(8).buffer_size(4096));
    let peers = host.pairs(3, &listener);
    let writers: Vec<_> = peers
        .into_iter()
        .map(|mut peer| {
            in_thread(move || {
                peer.write_all(&pattern(0, 4 * 8 * 4096 + 17)).unwrap();
                peer
            })
        })
        .collect();
    host.until(|host| host.seen.values().all(|seen| seen.received.len() == 4 * 8 * 4096 + 17));
    for seen in host.seen.values() {
        assert_eq!(seen.received, pattern(0, 4 * 8 * 4096 + 17));
    }
    host.close_all();
    writers.into_iter().for_each(|writer| drop(writer.join().unwrap()));
    host.finish();
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Ending {
    Fin,
    HalfClose,
    Reset,
    Cancel,
}

pub fn h22_each_ending_with_and_without_data(kind: EngineKind) {
    let (listener, _) = listen();
    let small = options(kind).entries(4).completion_entries(8).buffer_count(16).buffer_size(128);
    for options in [options(kind), small] {
        let mut host = Host::with(&options);
        let mut generation = 0;
        for ending in [Ending::Fin, Ending::HalfClose, Ending::Reset, Ending::Cancel] {
            for len in [0, 1, 1000, 30_000] {
                // Several at once, so that a small completion queue overflows.
                let ids: Vec<_> = (0..12).map(|index| id(index, generation)).collect();
                generation += 1;
                let mut peers: Vec<_> = ids.iter().map(|id| host.pair(*id, &listener)).collect();
                for peer in &mut peers {
                    peer.write_all(&pattern(0, len)).unwrap();
                }
                if matches!(ending, Ending::Reset) {
                    // A reset may overtake data: that is TCP's doing.
                    host.until(|host| ids.iter().all(|id| host.seen[id].received.len() == len));
                }
                let mut kept = Vec::new();
                for (peer, id) in peers.into_iter().zip(&ids) {
                    match ending {
                        Ending::Fin => drop(peer),
                        Ending::HalfClose => {
                            peer.shutdown(Shutdown::Write).unwrap();
                            kept.push(peer);
                        }
                        Ending::Reset => SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap(),
                        Ending::Cancel => {
                            host.close(*id);
                            kept.push(peer);
                        }
                    }
                }
                if ending != Ending::Cancel {
                    host.until(|host| ids.iter().all(|id| host.seen[id].failed.is_some()));
                }
                for id in &ids {
                    let seen = &host.seen[id];
                    match (ending, &seen.failed) {
                        (Ending::Fin | Ending::HalfClose, Some(ConnectionFailure::ClosedByPeer)) => {}
                        (
                            Ending::Reset,
                            Some(ConnectionFailure::Io { kind: ErrorKind::ConnectionReset, .. }),
                        ) => {}
                        (Ending::Cancel, None) => continue,
                        other => panic!("{other:?} with {len} bytes"),
                    }
                    assert_eq!(seen.received, pattern(0, len), "{ending:?}");
                }
                host.close_all();
            }
        }
        host.finish();
    }
}

pub fn h22_end_of_stream_while_starved(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(2).buffer_size(64));
    let mut peers = host.pairs(4, &listener);
    host.hold = true;
    for peer in &mut peers {
        peer.write_all(&pattern(0, 100)).unwrap();
    }
    host.until(|host| host.held.len() == 2);
    drop(peers);
    host.idle(20 * MS);
    assert!(host.seen.values().all(|seen| seen.failed.is_none()));
    host.hold = false;
    host.held.clear();
    host.until(|host| host.seen.values().all(|seen| seen.failed.is_some()));
    for seen in host.seen.values() {
        assert_eq!(seen.failed, Some(ConnectionFailure::ClosedByPeer));
        assert_eq!(seen.received, pattern(0, 100));
    }
    host.finish();
}

pub fn h25_a_flood_does_not_silence_others(kind: EngineKind) {
    const FLOOD: usize = 32 << 20;
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(16).buffer_size(4096));
    let (flooded, quiet) = (id(0, 0), id(1, 0));
    let mut flood = host.pair(flooded, &listener);
    let mut peer = host.pair(quiet, &listener);
    let writer = in_thread(move || {
        let block = vec![7; 1 << 20];
        (0..FLOOD >> 20).for_each(|_| flood.write_all(&block).unwrap());
        flood
    });
    for round in 1..=20 {
        peer.write_all(b"x").unwrap();
        let (turns, flood) = (host.turns, host.seen[&flooded].received.len());
        host.until(|host| host.seen[&quiet].received.len() == round);
        // The pool is what a turn receives at most; in a few turns it is the quiet one's.
        let (turns, flood) = (host.turns - turns, host.seen[&flooded].received.len() - flood);
        assert!(
            turns <= 8 && flood <= 8 * 16 * 4096,
            "{turns} turns and {flood} bytes of the flood before it"
        );
    }
    assert!(host.seen[&flooded].received.len() < FLOOD, "the quiet one was served during the flood");
    host.until(|host| host.seen[&flooded].received.len() == FLOOD);
    drop(writer.join().unwrap());
    host.finish();
}

pub fn a_small_completion_queue_loses_nothing(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host =
        Host::with(&options(kind).entries(2).completion_entries(8).buffer_count(256).buffer_size(64));
    let mut peers = host.pairs(40, &listener);
    for round in 1..=5 {
        for (index, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&pattern(0, 500)).unwrap();
            host.send(id(index as u16, 0), transmit(b"0123456789", 3));
        }
        host.until(|host| {
            host.seen.values().all(|seen| seen.received.len() == round * 500 && seen.owed == 0)
        });
    }
    host.finish();
}
