//! Replies, pushes and bytes in every cut.

use super::*;
use crate::parts::Command;
use crate::plan::SECOND;
use crate::servers::GARBAGE;
use crate::socket::Link;
use respiral::{Error, Protocol};

// F-01: an invalidation between two replies, the stream cut at every byte.
#[test]
fn f01_a_push_between_two_replies() {
    for cut in 1..80 {
        let mut world = connected(Plan::calm());
        let warm = world.call(Command::get(0));
        world.run_for(10_000);
        assert!(world.has_reply(warm));
        let id = world.socket();
        let hold = world.context.now + 20_000;
        world.open_socket(id).down = Link::Stalled(hold);
        let first = world.call(Command::get(0));
        world.run_for(10_000);
        let session = world.threads[0].net.sockets[&id].session.expect("a session");
        let mut push = Vec::new();
        world.servers.push(session, &mut push);
        world.open_socket(id).to_client.extend(push);
        let second = world.call(Command::get(1));
        world.threads[0].net.cut = Some(cut);
        world.run_for(50_000);
        assert!(world.has_reply(first) && world.has_reply(second), "cut at {cut}");
        assert_eq!(world.threads[0].heard, [1], "cut at {cut}");
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
            world.threads[0].listener = None;
        }
        let calls: Vec<u64> = (0..20).map(|_| world.call(Command::incr(1))).collect();
        world.run_for(500_000);
        assert!(calls.iter().all(|call| world.has_reply(*call)));
        assert_eq!(world.threads[0].machine.pushes_seen(), world.servers.pushes[0]);
        if world.threads[0].listener.is_some() {
            assert_eq!(world.threads[0].heard.len() as u64, world.servers.pushes[0]);
            assert!(world.threads[0].heard.is_sorted());
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
    let read = world.call(Command::echo(500_000));
    world.run_for(300);
    let written = world.call(Command::set(0, 1_500_000));
    let small = world.call(Command::get(1));
    world.run_for(9_000_000);
    for call in [read, written, small] {
        assert!(world.has_reply(call), "call {call}: {:?}", world.context.ledger.outcome(call));
    }
    assert_eq!(world.servers.stored(0, "a").map(<[u8]>::len), Some(1_500_000));
}

// H20: replies of several times the pool, on several connections at once.
#[test]
fn h20_large_replies_and_few_buffers() {
    let mut plan = Plan::calm();
    plan.client.connections = 3;
    plan.buffers = (2, 512);
    plan.net.piece_max = 700;
    let mut world = connected(plan);
    let calls: Vec<u64> = (0..9).map(|_| world.call(Command::echo(20_000))).collect();
    world.run_for(5_000_000);
    assert!(calls.iter().all(|call| world.has_reply(*call)));
    world.run_for(1_000_000);
    assert_eq!(world.threads[0].pool.lent(), 0);
}

// A peer that sends what is no RESP: its connection closes, its call says so, the next call finds a new connection.
#[test]
fn garbage_closes_the_connection() {
    let mut world = connected(Plan::calm());
    for (count, garbage) in (1..).zip(GARBAGE) {
        world.servers.instead = Some(garbage.as_bytes().to_vec());
        let call = world.call(Command::incr(0));
        world.run_for(50_000);
        assert_eq!(world.failed(call), Some(Delivery::MaybeExecuted), "{garbage:?}");
        let next = world.call(Command::incr(0));
        world.run_for(50_000);
        assert!(world.has_reply(next));
        assert_eq!(world.threads[0].net.closes, count);
    }
}

// F-03: nested a hundred thousand levels deep, in one piece and in many. The other connection is not touched.
#[test]
fn f03_nested_a_hundred_thousand_levels() {
    for (head, piece) in
        ["*1\r\n", "~1\r\n", "%1\r\n+k\r\n", "|1\r\n+k\r\n"].into_iter().zip([1 << 20, 1, 3, 1000])
    {
        let mut plan = Plan::calm();
        plan.client.connections = 2;
        plan.net.piece_max = piece;
        let mut world = connected(plan);
        world.servers.instead = Some([head.repeat(100_000), ":1\r\n".into()].concat().into_bytes());
        let nested = world.call(Command::get(0));
        world.run_for(5 * SECOND);
        match world.context.ledger.outcome(nested) {
            Some(End::Failed(Error::Protocol(error))) => {
                assert!(error.to_string().contains("512"), "{error}")
            }
            other => panic!("expected a protocol error, got {other:?}"),
        }
        let calls: Vec<u64> = (0..4).map(|_| world.call(Command::get(0))).collect();
        world.run_for(SECOND);
        assert!(calls.iter().all(|call| world.has_reply(*call)));
        assert_eq!((world.threads[0].net.connects, world.threads[0].net.closes), (3, 1));
    }
}

// F-05: every type, plain, streamed and with attributes, the stream cut anywhere; what follows is in step.
#[test]
fn f05_every_type_in_every_form() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for piece in [1, 2, 3, 7, 1000] {
            let mut plan = Plan::calm();
            plan.client.protocol = protocol;
            plan.net.piece_max = piece;
            plan.server.twists = 500;
            let mut world = connected(plan);
            let types = (0..60).map(|seed: u32| Command::new("TYPES", [seed.to_string().into_bytes()]));
            let calls: Vec<u64> = types
                .flat_map(|types| [types, Command::incr(0)])
                .map(|command| world.call(command))
                .collect();
            world.run_for(20 * SECOND);
            // That each has its own reply, value by value, is checked as it comes.
            assert!(calls.iter().all(|call| world.has_reply(*call)));
        }
    }
}
