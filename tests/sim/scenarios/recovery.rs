//! Connections that fail, and what becomes of the commands on them.

use super::*;
use crate::plan::{MS, SECOND};
use crate::socket::Link;
use crate::wire::Command;

// RECON-007, RECON-033, SYS-005: the socket dies after the command was written: run once, told once, never again.
#[test]
fn recon007_killed_after_the_write() {
    let mut world = connected(Plan::calm());
    let id = world.socket();
    world.net.sockets.get_mut(&id).expect("open").down = Link::Lost;
    let call = world.call(Command::Incr { key: 0 });
    world.run_for(20 * MS);
    assert_eq!(world.runs(call), 1);
    world.reset();
    world.run_for(50 * MS);
    assert_eq!(world.failed(call), Some(Delivery::MaybeExecuted));
    assert_eq!(world.runs(call), 1);
    // RECON-011: the replacement came at once, though nobody asked.
    assert_eq!(world.net.connects, 2);
}

// RECON-029, RECON-033, A-64: the kernel took nothing of it, so it goes out on the replacement.
#[test]
fn recon029_killed_before_the_write() {
    let mut plan = Plan::calm();
    plan.net.send_buffer = 100;
    let mut world = connected(plan);
    let id = world.socket();
    world.net.sockets.get_mut(&id).expect("open").up = Link::Stalled(u64::MAX);
    let whole = world.call(Command::Set { key: 0, size: 10 });
    let cut = world.call(Command::Set { key: 1, size: 200 });
    let unseen = world.call(Command::Set { key: 2, size: 10 });
    world.run_for(20 * MS);
    world.reset();
    world.run_for(50 * MS);
    assert_eq!(world.failed(whole), Some(Delivery::MaybeExecuted));
    assert_eq!(world.failed(cut), Some(Delivery::NotExecuted));
    assert!(world.has_reply(unseen));
    assert_eq!((world.runs(whole), world.runs(cut), world.runs(unseen)), (0, 0, 1));
}

// RECON-011, RECON-015: one attempt at once; when it fails none until somebody asks; and those who ask share one.
#[test]
fn recon011_a_failed_replacement_waits_for_use() {
    let mut world = connected(Plan::calm());
    world.net.weather.refuses = true;
    world.reset();
    world.run_for(10 * SECOND);
    assert_eq!(world.net.connects, 2);
    let lost: Vec<u64> = (0..100).map(|_| world.call(Command::Incr { key: 0 })).collect();
    world.run_for(SECOND);
    assert_eq!(world.net.connects, 3);
    assert!(lost.iter().all(|call| world.failed(*call) == Some(Delivery::NotExecuted)));
    world.net.weather.refuses = false;
    let calls: Vec<u64> = (0..100).map(|_| world.call(Command::Incr { key: 0 })).collect();
    world.run_for(SECOND);
    assert_eq!(world.net.connects, 4);
    assert!(calls.iter().all(|call| world.has_reply(*call)));
}

// RECON-009: a connect that is never answered ends at its timeout, and the next call may try again.
#[test]
fn a_black_hole_ends_at_the_connect_timeout() {
    let mut plan = Plan::calm();
    plan.client.connect_timeout = SECOND;
    let mut world = unconnected(plan);
    world.net.weather.swallows_connects = true;
    let call = world.call(Command::Get { key: 0 });
    world.run_for(999 * MS);
    assert_eq!(world.failed(call), None);
    world.run_for(10 * MS);
    assert_eq!(world.failed(call), Some(Delivery::NotExecuted));
    world.net.weather.swallows_connects = false;
    let next = world.call(Command::Get { key: 0 });
    world.run_for(100 * MS);
    assert!(world.has_reply(next));
}

// H26: the client is closed while the kernel takes the last bytes: what it took is told, to the byte.
#[test]
fn h26_a_close_races_a_send() {
    let mut seen = [0; 2];
    for time in 0..40 {
        let mut plan = Plan::calm();
        plan.seed = 1 + time;
        plan.net.take_max = 20;
        plan.net.close_lag_max = 2000;
        let mut world = connected(plan);
        let calls: Vec<u64> = (0..5).map(|_| world.call(Command::Set { key: 0, size: 30 })).collect();
        world.run_for(time * 50);
        world.close();
        world.run_for(100 * MS);
        for call in calls {
            match world.failed(call) {
                // The ledger checks each against what the kernel took and what ran.
                Some(delivery) => seen[usize::from(delivery == Delivery::MaybeExecuted)] += 1,
                None => assert!(world.has_reply(call)),
            }
        }
        assert!(world.machine.is_closed());
        assert_eq!(world.net.connects, world.net.closes);
    }
    assert!(seen.iter().all(|count| *count > 5), "both ends are seen: {seen:?}");
}

// F-11: receives, timeouts and closes meet at every distance; news of an old socket changes nothing.
#[test]
fn f11_a_reply_meets_its_deadline() {
    let mut ends = [0; 2];
    for time in 0..60 {
        let mut plan = Plan::calm();
        plan.seed = 1 + time;
        plan.net.stale = 1000;
        plan.net.piece_max = 10;
        let mut world = connected(plan);
        let first = world.call_within(Command::Echo { size: 17 }, Some(1000 + time * 40));
        world.run_for(10 * MS);
        ends[usize::from(world.has_reply(first))] += 1;
        let second = world.call(Command::Echo { size: 17 });
        world.run_for(time * 30);
        world.reset();
        let third = world.call(Command::Echo { size: 17 });
        world.run_for(100 * MS);
        assert!(world.context.ledger.outcome(second).is_some());
        assert!(world.has_reply(third));
        world.close();
        world.run_for(100 * MS);
        assert!(world.machine.is_closed());
        assert_eq!((world.pool.lent(), world.machine.held()), (0, (0, 0, 0)));
    }
    assert!(ends.iter().all(|count| *count > 5), "both ends are seen: {ends:?}");
}
