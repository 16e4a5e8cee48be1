//! Callers that leave, wait and run out of time.

use super::*;
use crate::parts::Command;
use crate::plan::SECOND;
use crate::socket::Link;
use respiral::Error;
use respiral::error::Stage;

// F-07, SYS-006, CONN-102: the caller goes away at every point of its call's way.
#[test]
fn f07_a_caller_leaves_at_any_time() {
    let mut ran = 0;
    for delay in 0..60 {
        let mut plan = Plan::calm();
        plan.net.piece_max = 20;
        plan.net.take_max = 10;
        let mut world = connected(plan);
        let gone = world.call(Command::incr(1));
        world.run_for(delay * 37);
        if world.context.ledger.outcome(gone).is_none() {
            world.drop_call(gone);
        }
        let next = world.call(Command::incr(1));
        world.run_for(100_000);
        assert!(world.has_reply(next), "dropped after {delay}");
        assert_eq!(world.threads[0].machine.held(), (0, 0, 0));
        ran += world.runs(gone);
    }
    assert!((10..60).contains(&ran), "some left before their command was sent, some after: {ran}");
}

// F-07: a thousand random drops over one connection.
#[test]
fn f07_a_thousand_drops() {
    let mut plan = Plan::calm();
    plan.crowd.callers = 20;
    plan.crowd.calls_max = 2000;
    plan.crowd.drops = 500;
    plan.crowd.drop_within = 300;
    plan.crowd.until = 10 * SECOND;
    plan.heal_at = 10 * SECOND;
    let counts = unconnected(plan).run();
    assert!(counts.dropped > 500 && counts.replies > 500, "{counts:?}");
}

// CONN-031: a reply that never comes is given up after exactly the timeout, and the stage says how far the call was.
#[test]
fn conn031_the_command_timeout() {
    let mut world = connected(Plan::calm());
    let id = world.socket();
    world.open_socket(id).down = Link::Lost;
    let call = world.call(Command::incr(0));
    let begun = world.context.now;
    world.run_for(10 * SECOND - 1);
    assert_eq!(world.context.ledger.outcome(call), None);
    world.run_for(2);
    assert_eq!(world.context.now, begun + 10 * SECOND + 1);
    match world.context.ledger.outcome(call) {
        Some(End::Failed(Error::Timeout(error))) => assert_eq!(error.stage, Stage::AwaitingReply),
        other => panic!("expected a timeout, got {other:?}"),
    }
}

// CONN-040: commands beyond the limit wait in line and go in order; CONN-112: in line they are WaitingForCapacity.
#[test]
fn conn040_a_limit_of_one() {
    let mut plan = Plan::calm();
    plan.client.in_flight_max = 1;
    let mut world = connected(plan);
    let calls: Vec<u64> = (0..10).map(|_| world.call(Command::incr(0))).collect();
    let late = world.call_within(Command::incr(0), Some(1000));
    world.run_for(1_001);
    match world.context.ledger.outcome(late) {
        Some(End::Failed(Error::Timeout(error))) => assert_eq!(error.stage, Stage::WaitingForCapacity),
        other => panic!("expected a timeout, got {other:?}"),
    }
    world.run_for(100_000);
    assert!(calls.iter().all(|call| world.has_reply(*call)));
    let ran: Vec<&String> = world.servers.log.iter().filter(|line| line.starts_with("INCR")).collect();
    let expected: Vec<String> = calls.iter().map(|call| format!("INCR {call}")).collect();
    assert_eq!(ran, expected.iter().collect::<Vec<_>>());
}

// H16, H21: callers keep every large reply they get; the others still get theirs.
#[test]
fn h21_callers_keep_everything() {
    for count in [1, 2, 4, 16] {
        let mut plan = Plan::calm();
        plan.buffers = (count, 4096);
        plan.crowd.keep_max = 1000 * SECOND;
        let mut world = connected(plan);
        let calls: Vec<u64> = (0..60).map(|_| world.call(Command::echo(2000))).collect();
        world.run_for(SECOND);
        assert!(calls.iter().all(|call| world.has_reply(*call)));
        assert!(
            world.threads[0].pool.lent() * 2 <= usize::from(count),
            "callers hold at most half of {count}"
        );
        world.run_for(2000 * SECOND);
        assert_eq!(world.threads[0].pool.lent(), 0);
    }
}
