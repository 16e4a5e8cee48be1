use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use respiral::io::{Address, ConnectionFailure, SocketOptions};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::time::Duration;

pub fn echo_over_tcp(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    for round in 0..20usize {
        let message = pattern(round * 100, 100);
        host.send(a, transmit(&message, 4096));
        host.until(|host| host.seen[&a].owed == 0);
        let mut heard = vec![0; 100];
        peer.read_exact(&mut heard).unwrap();
        assert_eq!(heard, message);
        peer.write_all(&heard).unwrap();
        host.until(|host| host.seen[&a].received.len() == (round + 1) * 100);
    }
    assert_eq!(host.seen[&a].received, pattern(0, 2000));
    assert_eq!(host.seen[&a].sent, [100; 20]);
    host.finish();
}

pub fn echo_over_a_unix_socket(kind: EngineKind) {
    let path = std::env::temp_dir().join(format!("respiral-engine-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let mut host = Host::new(kind);
    let a = id(3, 0);
    host.connect_to(a, Address::Unix(path.as_path().into()), SocketOptions::default());
    host.send(a, transmit(b"over there", 4));
    host.until(|host| host.seen[&a].owed == 0);
    assert!(host.seen[&a].connected);
    let (mut peer, _) = listener.accept().unwrap();
    let mut heard = [0; 10];
    peer.read_exact(&mut heard).unwrap();
    peer.write_all(&heard).unwrap();
    drop(peer);
    host.until(|host| host.seen[&a].failed.is_some());
    assert_eq!(host.seen[&a].received, b"over there");
    assert_eq!(host.seen[&a].failed, Some(ConnectionFailure::ClosedByPeer));
    host.finish();
    std::fs::remove_file(&path).unwrap();
}

pub fn refused(kind: EngineKind) {
    let (listener, address) = listen();
    drop(listener);
    let mut host = Host::new(kind);
    for index in 0..10 {
        host.connect(id(index, 0), address);
    }
    host.until(|host| host.seen.values().all(|seen| seen.failed.is_some()));
    for seen in host.seen.values() {
        assert!(
            matches!(
                seen.failed,
                Some(ConnectionFailure::Io { kind: ErrorKind::ConnectionRefused, errno: Some(_) })
            ),
            "{seen:?}"
        );
        assert!(!seen.connected);
    }
    host.finish();
}

pub fn a_missing_unix_socket(kind: EngineKind) {
    let mut host = Host::new(kind);
    let path = std::path::Path::new("/nonexistent/respiral.sock");
    host.connect_to(id(0, 0), Address::Unix(path.into()), SocketOptions::default());
    host.until(|host| host.seen[&id(0, 0)].failed.is_some());
    let failure = host.seen[&id(0, 0)].failed.clone();
    assert!(matches!(failure, Some(ConnectionFailure::Io { kind: ErrorKind::NotFound, .. })), "{failure:?}");
    let long = "x".repeat(200);
    host.connect_to(id(1, 0), Address::Unix(std::path::Path::new(&long).into()), SocketOptions::default());
    host.until(|host| host.seen[&id(1, 0)].failed.is_some());
    host.finish();
}

/// A listener that accepts nobody: once its queue is full, the kernel drops the handshakes.
fn unreachable_listener() -> (Socket, SocketAddr) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    (listener, address)
}

pub fn unreachable_then_closed(kind: EngineKind) {
    let (_listener, address) = unreachable_listener();
    let mut host = Host::new(kind);
    for index in 0..8 {
        host.connect(id(index, 0), address);
        host.send(id(index, 0), transmit(b"never heard", 16));
    }
    host.idle(Duration::from_millis(50));
    let waiting: Vec<_> = host.seen.iter().filter(|(_, seen)| !seen.connected).map(|(id, _)| *id).collect();
    assert!(waiting.len() >= 4, "{waiting:?}");
    host.close_all();
    for id in waiting {
        assert_eq!(host.seen[&id].sent, [0], "nothing was sent");
        assert_eq!(host.seen[&id].failed, None);
    }
    host.finish();
}

pub fn a_send_waits_for_the_connection(kind: EngineKind) {
    let (listener, address) = listen();
    let mut host = Host::new(kind);
    host.connect(id(0, 0), address);
    host.send(id(0, 0), transmit(b"early", 16));
    host.until(|host| host.seen[&id(0, 0)].owed == 0);
    let (mut peer, _) = listener.accept().unwrap();
    let mut heard = [0; 5];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!((&heard, &host.seen[&id(0, 0)].sent[..]), (b"early", &[5][..]));
    host.finish();
}

pub fn keepalive_is_set(kind: EngineKind) {
    let (listener, address) = listen();
    let mut host = Host::new(kind);
    let seconds = Duration::from_secs;
    let options = SocketOptions { keepalive: Some((seconds(30), Some(seconds(5)), Some(3))) };
    host.connect_to(id(0, 0), Address::Tcp(address), options);
    host.until(|host| host.seen[&id(0, 0)].connected);
    let (peer, _) = listener.accept().unwrap();
    // The kernel's own table tells the timer of our end: 02 is keepalive.
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X} ", peer.peer_addr().unwrap().port());
    let ours = table.lines().find(|line| {
        // Local address, remote address, state: 01 is established.
        let mut columns = line.split_whitespace().skip(1);
        columns.next().is_some_and(|local| local.ends_with(port.trim())) && columns.nth(1) == Some("01")
    });
    let timer = ours.and_then(|line| line.split_whitespace().nth(5)).unwrap();
    assert!(timer.starts_with("02:"), "{ours:?}");
    drop(peer);
    host.finish();
}

pub fn a_busy_place_is_refused(kind: EngineKind) {
    let (listener, address) = listen();
    let mut host = Host::new(kind);
    let _peer = host.pair(id(0, 0), &listener);
    host.connect(id(0, 1), address);
    host.until(|host| host.seen[&id(0, 1)].failed.is_some());
    host.close(id(0, 1));
    host.until(|host| host.seen[&id(0, 1)].closed);
    assert!(!host.seen[&id(0, 0)].closed);
    host.finish();
}

pub fn many_reopened(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    for generation in 0..30 {
        let mut peers = Vec::new();
        for index in 0..10 {
            let mut peer = host.pair(id(index, generation), &listener);
            peer.write_all(&pattern(0, 1000)).unwrap();
            peers.push(peer);
        }
        host.until(|host| (0..10).all(|index| host.seen[&id(index, generation)].received.len() == 1000));
        if generation % 2 == 0 {
            drop(peers);
        }
        host.close_all();
    }
    host.finish();
}

/// The peer keeps sending while the connection is closed and its place is used again.
/// H37: more operations than the submission queue has room for, in one turn.
pub fn h37_a_full_submission_queue(kind: EngineKind) {
    // As many as a listener keeps that nobody accepts.
    const COUNT: u16 = 100;
    let (listener, address) = listen();
    let mut host = Host::with(&options(kind).entries(1).completion_entries(8));
    (0..COUNT).for_each(|index| host.connect(id(index, 0), address));
    host.until(|host| host.seen.values().all(|seen| seen.connected));
    let mut peers: Vec<_> = (0..COUNT).map(|_| listener.accept().unwrap().0).collect();
    (0..COUNT).for_each(|index| host.send(id(index, 0), transmit(b"0123456789", 3)));
    host.until(|host| host.seen.values().all(|seen| seen.sent == [10]));
    for peer in &mut peers {
        peer.read_exact(&mut [0; 10]).unwrap();
    }
    host.finish();
}

pub fn f11_old_generations_are_silent(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::with(&options(kind).buffer_count(8).buffer_size(256));
    for generation in 0..200 {
        let a = id(0, generation);
        let mut peer = host.pair(a, &listener);
        let _ = peer.write_all(&pattern(0, 4000));
        if generation % 3 > 0 {
            host.turn();
        }
        host.close(a);
        if generation % 2 == 0 {
            let _ = peer.write_all(&pattern(4000, 4000));
        }
        host.until(|host| host.seen[&a].closed);
        let seen = &host.seen[&a].received;
        assert_eq!(*seen, pattern(0, seen.len()));
    }
    host.finish();
}

pub fn operations_on_unknown_connections_are_answered(kind: EngineKind) {
    let mut host = Host::new(kind);
    for unknown in [id(0, 0), id(900, 7)] {
        host.seen.insert(unknown, Seen::default());
        host.send(unknown, transmit(b"lost", 16));
        host.until(|host| host.seen[&unknown].owed == 0);
        host.close(unknown);
        host.until(|host| host.seen[&unknown].closed);
        assert_eq!(host.seen[&unknown].sent, [0]);
    }
    assert!(host.engine.may_park().unwrap());
    host.finish();
}
