//! Connections that fail, and what becomes of the commands on them.

use super::*;
use crate::parts::Command;
use crate::plan::{MS, SECOND};
use crate::socket::Link;
use respiral::Error;

// RECON-007, RECON-033, SYS-005: the socket dies after the command was written: run once, told once, never again.
#[test]
fn recon007_killed_after_the_write() {
    let mut world = connected(Plan::calm());
    let id = world.socket();
    world.open_socket(id).down = Link::Lost;
    let call = world.call(Command::incr(0));
    world.run_for(20 * MS);
    assert_eq!(world.runs(call), 1);
    world.break_socket();
    world.run_for(50 * MS);
    assert_eq!(world.failed(call), Some(Delivery::MaybeExecuted));
    assert_eq!(world.runs(call), 1);
    // RECON-011: the replacement came at once, though nobody asked.
    assert_eq!(world.threads[0].net.connects, 2);
}

// RECON-029, RECON-033, A-64: the kernel took nothing of it, so it goes out on the replacement.
#[test]
fn recon029_killed_before_the_write() {
    let mut plan = Plan::calm();
    plan.net.send_buffer = 100;
    let mut world = connected(plan);
    let id = world.socket();
    world.open_socket(id).up = Link::Stalled(u64::MAX);
    let whole = world.call(Command::set(0, 10));
    let cut = world.call(Command::set(1, 200));
    let unseen = world.call(Command::set(2, 10));
    world.run_for(20 * MS);
    world.break_socket();
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
    world.threads[0].net.weather.refuses = true;
    world.break_socket();
    world.run_for(10 * SECOND);
    assert_eq!(world.threads[0].net.connects, 2);
    let lost: Vec<u64> = (0..100).map(|_| world.call(Command::incr(0))).collect();
    world.run_for(SECOND);
    assert_eq!(world.threads[0].net.connects, 3);
    assert!(lost.iter().all(|call| world.failed(*call) == Some(Delivery::NotExecuted)));
    world.threads[0].net.weather.refuses = false;
    let calls: Vec<u64> = (0..100).map(|_| world.call(Command::incr(0))).collect();
    world.run_for(SECOND);
    assert_eq!(world.threads[0].net.connects, 4);
    assert!(calls.iter().all(|call| world.has_reply(*call)));
}

// RECON-009: a connect that is never answered ends at its timeout, and the next call may try again.
#[test]
fn a_black_hole_ends_at_the_connect_timeout() {
    let mut plan = Plan::calm();
    plan.client.connect_timeout = SECOND;
    let mut world = unconnected(plan);
    world.threads[0].net.weather.swallows_connects = true;
    let call = world.call(Command::get(0));
    world.run_for(999 * MS);
    assert_eq!(world.failed(call), None);
    world.run_for(10 * MS);
    assert_eq!(world.failed(call), Some(Delivery::NotExecuted));
    world.threads[0].net.weather.swallows_connects = false;
    let next = world.call(Command::get(0));
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
        let calls: Vec<u64> = (0..5).map(|_| world.call(Command::set(0, 30))).collect();
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
        assert!(world.threads[0].machine.is_closed());
        assert_eq!(world.threads[0].net.connects, world.threads[0].net.closes);
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
        let first = world.call_within(Command::echo(17), Some(500 + time * 30));
        world.run_for(10 * MS);
        ends[usize::from(world.has_reply(first))] += 1;
        let second = world.call(Command::echo(17));
        world.run_for(time * 30);
        world.break_socket();
        let third = world.call(Command::echo(17));
        world.run_for(100 * MS);
        assert!(world.context.ledger.outcome(second).is_some());
        assert!(world.has_reply(third));
        world.close();
        world.run_for(100 * MS);
        assert!(world.threads[0].machine.is_closed());
        assert_eq!((world.threads[0].pool.lent(), world.threads[0].machine.held()), (0, (0, 0, 0)));
    }
    assert!(ends.iter().all(|count| *count > 5), "both ends are seen: {ends:?}");
}

// F-35, as far as there is no discovery: the old primary stays, as a replica. Writes are refused, each with its reason (it
// is an answer: a module's command may pass it on half-way); reads go on; the connection is kept.
#[test]
fn f35_the_old_primary_stays() {
    let mut plan = Plan::calm();
    plan.server.replica_lag = Some(100);
    let mut world = connected(plan);
    let before = world.call(Command::incr(0));
    world.run_for(50 * MS);
    assert!(world.has_reply(before));
    world.servers.fail_over();
    let (write, read) = (world.call(Command::incr(0)), world.call(Command::get(1)));
    world.run_for(50 * MS);
    match world.context.ledger.outcome(write) {
        Some(End::Failed(Error::Server(error))) => assert_eq!(error.code(), "READONLY"),
        other => panic!("expected READONLY, got {other:?}"),
    }
    assert_eq!((world.failed(write), world.runs(write)), (Some(Delivery::Answered), 1));
    assert!(world.has_reply(read));
    world.servers.fail_over();
    let next = world.call(Command::incr(0));
    world.run_for(50 * MS);
    assert!(world.has_reply(next));
    assert_eq!(world.threads[0].net.connects, 1);
}

// F-15: the connection is half open, in one direction or both. The watchdog finds it within its limit, and what was sent
// then may have run; what comes next finds a new connection.
#[test]
fn f15_half_open() {
    for (up, down, ran) in [(true, true, 0), (true, false, 0), (false, true, 1)] {
        let mut plan = Plan::calm();
        plan.client.idle_read_timeout = Some(SECOND);
        plan.client.command_timeout = None;
        let mut world = connected(plan);
        let id = world.socket();
        let socket = world.open_socket(id);
        socket.up = if up { Link::Lost } else { Link::Good };
        socket.down = if down { Link::Lost } else { Link::Good };
        let call = world.call(Command::incr(0));
        world.run_for(SECOND - 1);
        assert_eq!(world.context.ledger.outcome(call), None);
        world.run_for(20 * MS);
        assert_eq!((world.failed(call), world.runs(call)), (Some(Delivery::MaybeExecuted), ran));
        let next = world.call(Command::incr(0));
        world.run_for(50 * MS);
        assert!(world.has_reply(next));
    }
}

// F-17: eight idle connections are closed at once, by FIN or RST: all are replaced, no call fails, and nobody dials twice.
#[test]
fn f17_all_idle_connections_are_stale() {
    for by_reset in [false, true] {
        let mut plan = Plan::calm();
        plan.client.connections = 8;
        let mut world = connected(plan);
        for id in world.threads[0].net.open_sockets() {
            match by_reset {
                true => world.reset(0, id),
                false => world.end_stream(0, id),
            }
        }
        world.run_for(5 * MS);
        let calls: Vec<u64> = (0..17).map(|_| world.call(Command::get(0))).collect();
        world.run_for(50 * MS);
        assert!(calls.iter().all(|call| world.has_reply(*call)));
        assert_eq!(world.threads[0].net.connects, 16);
        assert!(world.threads[0].is_whole());
    }
}

// H34: commands are cancelled at each position and at each time, and the connection is broken or the client closed before
// or after. The ledger checks each fate; no byte, place or gap is left.
#[test]
fn h34_cancelled_at_each_position() {
    for (position, time, ending) in
        (0..6).flat_map(|p| (0..8).flat_map(move |t| (0..4).map(move |e| (p, t * 60, e))))
    {
        let mut plan = Plan::calm();
        plan.net.take_max = 40;
        plan.net.send_buffer = 100;
        plan.net.close_lag_max = 500;
        plan.client.command_timeout = None;
        let mut world = connected(plan);
        let calls: Vec<u64> = (0..6).map(|key| world.call(Command::set(key % 3, 30))).collect();
        world.run_for(time);
        let end = |world: &mut World| match ending {
            0 | 1 => world.break_all_sockets(),
            2 => world.close(),
            _ => {}
        };
        if ending == 0 {
            end(&mut world);
            world.run_for(100);
        }
        if world.context.ledger.outcome(calls[position]).is_none() {
            world.drop_call(calls[position]);
        }
        if ending != 0 {
            end(&mut world);
        }
        world.run_for(SECOND);
        assert!(calls.iter().all(|call| world.context.ledger.outcome(*call).is_some()));
        assert_eq!(world.threads[0].machine.held(), (0, 0, 0));
        assert!(world.threads[0].machine.loads().all(|load| (load.in_flight, load.bytes) == (0, 0)));
    }
}

// Two threads with clients of their own: what breaks one does not touch the other.
#[test]
fn threads_are_apart() {
    let mut plan = Plan::calm();
    plan.others = vec![plan.client.clone()];
    let mut world = connected(plan);
    let id = world.socket();
    world.open_socket(id).down = Link::Lost;
    let (first, timeout) = (world.call(Command::incr(0)), Some(SECOND));
    let second = world.threads[1].call(Command::incr(0), timeout, &mut world.context);
    world.run_for(50 * MS);
    world.break_socket();
    assert!(world.has_reply(second));
    world.run_for(50 * MS);
    assert_eq!(world.failed(first), Some(Delivery::MaybeExecuted));
    assert_eq!((world.threads[0].net.connects, world.threads[1].net.connects), (2, 1));
}
