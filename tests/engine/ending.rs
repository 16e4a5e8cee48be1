use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use std::io::Write;
use std::time::Duration;

pub fn operations_after_close_are_answered(kind: EngineKind) {
    let (listener, address) = listen();
    let mut host = Host::new(kind);
    let _peer = host.pair(id(0, 0), &listener);
    let mut told = Vec::new();
    host.engine.close(&mut told);
    host.note(told);
    host.connect(id(1, 0), address);
    host.send(id(1, 0), transmit(b"late", 8));
    assert!(!host.engine.may_park().unwrap());
    host.turn();
    host.close(id(1, 0));
    host.turn();
    let seen = &host.seen[&id(1, 0)];
    assert!(seen.failed.is_some() && seen.closed);
    assert_eq!(seen.sent, [0]);
    assert!(host.engine.wake_fd().is_err());
    assert!(host.engine.may_park().unwrap());
}

pub fn dropped_with_everything_in_flight(kind: EngineKind) {
    for round in 0..30 {
        let (listener, address) = listen();
        let mut host =
            Host::with(&options(kind).entries(8).completion_entries(8).buffer_count(4).buffer_size(64));
        let mut peers = host.pairs(6, &listener);
        host.engine.wake_at(now(), Some(now() + Duration::from_secs(60)));
        for (index, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&pattern(0, 300)).unwrap();
            host.send(id(index as u16, 0), transmit(&vec![9; 4 << 20], 1 << 16));
        }
        host.connect(id(100, 0), address);
        host.hold = true;
        for _ in 0..round % 7 {
            host.turn();
        }
        host.close(id(0, 0));
        let pool = host.engine.pool().clone();
        drop(host);
        assert_eq!((pool.free(), pool.lent()), (4, 0));
    }
}
