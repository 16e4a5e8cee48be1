//! Replies, pushes and bytes in every cut.

use super::*;
use crate::socket::Link;
use crate::wire::Command;

// F-01: an invalidation between two replies, the stream cut at every byte.
#[test]
fn f01_a_push_between_two_replies() {
    for cut in 1..80 {
        let mut world = connected(Plan::calm());
        let warm = world.call(Command::Get { key: 0 });
        world.run_for(10_000);
        assert!(world.has_reply(warm));
        let id = world.socket();
        let hold = world.context.now + 20_000;
        world.net.sockets.get_mut(&id).expect("open").down = Link::Stalled(hold);
        let first = world.call(Command::Get { key: 0 });
        world.run_for(10_000);
        let session = world.net.sockets[&id].session.expect("a session");
        let mut push = Vec::new();
        world.server.push(session, &mut push);
        world.net.sockets.get_mut(&id).expect("open").to_client.extend(push);
        let second = world.call(Command::Get { key: 1 });
        world.net.cut = Some(cut);
        world.run_for(50_000);
        assert!(world.has_reply(first) && world.has_reply(second), "cut at {cut}");
        assert_eq!(world.heard, [1], "cut at {cut}");
    }
}

// F-01: pushes at any moment, also as the first frame and while nothing is owed; heard or not, replies stay in place.
#[test]
fn f01_pushes_at_any_moment() {
    for seed in 1..40 {
        let mut plan = Plan::calm();
        plan.seed = seed;
        plan.net.piece_max = 1 + seed as usize;
        plan.server.pushes = 1000;
        let mut world = connected(plan);
        if seed % 3 == 0 {
            world.listener = None;
        }
        let calls: Vec<u64> = (0..20).map(|_| world.call(Command::Incr { key: 1 })).collect();
        world.run_for(500_000);
        assert!(calls.iter().all(|call| world.has_reply(*call)));
        assert_eq!(world.machine.pushes_seen(), world.server.pushes);
        if world.listener.is_some() {
            assert_eq!(world.heard.len() as u64, world.server.pushes);
            assert!(world.heard.is_sorted());
        }
    }
}

// F-19, H32: both sides write and nobody reads, unless the client reads while it sends.
#[test]
fn f19_both_sides_write() {
    let mut plan = Plan::calm();
    plan.net.send_buffer = 1000;
    plan.server.unread_max = 1000;
    plan.client.queued_bytes_max = 8 << 20;
    plan.buffers = (4, 4096);
    let mut world = connected(plan);
    let read = world.call(Command::Echo { size: 500_000 });
    world.run_for(300);
    let written = world.call(Command::Set { key: 0, size: 1_500_000 });
    let small = world.call(Command::Get { key: 1 });
    world.run_for(9_000_000);
    for call in [read, written, small] {
        assert!(world.has_reply(call), "call {call}: {:?}", world.context.ledger.outcome(call));
    }
    assert_eq!(world.server.stored(0, "a").map(<[u8]>::len), Some(1_500_000));
}

// H20: replies of several times the pool, on several connections at once.
#[test]
fn h20_large_replies_and_few_buffers() {
    let mut plan = Plan::calm();
    plan.client.connections = 3;
    plan.buffers = (2, 512);
    plan.net.piece_max = 700;
    let mut world = connected(plan);
    let calls: Vec<u64> = (0..9).map(|_| world.call(Command::Echo { size: 20_000 })).collect();
    world.run_for(5_000_000);
    assert!(calls.iter().all(|call| world.has_reply(*call)));
    world.run_for(1_000_000);
    assert_eq!(world.pool.lent(), 0);
}

// A peer that sends what is no RESP: its connection closes, its call says so, the next call finds a new connection.
#[test]
fn garbage_closes_the_connection() {
    let mut world = connected(Plan::calm());
    world.server.garbage = true;
    let call = world.call(Command::Incr { key: 0 });
    world.run_for(50_000);
    assert_eq!(world.failed(call), Some(Delivery::MaybeExecuted));
    let next = world.call(Command::Incr { key: 0 });
    world.run_for(50_000);
    assert!(world.has_reply(next));
    assert_eq!(world.net.closes, 1);
}
