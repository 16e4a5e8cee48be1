//! What happens before the first command.

use super::*;
use crate::parts::Command;
use crate::plan::{MS, SECOND};
use respiral::Error;

// F-09: the replies to optional steps are late; whatever comes of it, nobody gets an OK of set-up.
#[test]
fn f09_late_replies_of_set_up() {
    for (hold, timeout) in [(100 * MS, 500 * MS), (700 * MS, 500 * MS)] {
        let mut plan = Plan::calm();
        plan.server.holds_info_until = hold;
        plan.client.command_timeout = Some(timeout);
        let mut world = unconnected(plan);
        let first = world.call_within(Command::get(0), Some(2 * SECOND));
        world.run_for(SECOND);
        let is_late = hold > timeout;
        assert_eq!(world.has_reply(first), !is_late);
        assert_eq!(world.failed(first), is_late.then_some(Delivery::NotExecuted));
        assert_eq!(world.threads[0].connected.as_ref().is_some_and(|result| result.is_err()), is_late);
        let second = world.call(Command::get(1));
        world.run_for(SECOND);
        assert!(world.has_reply(second));
    }
}

// CONN-012: a command that waits for a connection is seen once, after set-up, also when HELLO is not known.
#[test]
fn conn012_a_queued_command_and_an_old_server() {
    let mut plan = Plan::calm();
    plan.server.knows_hello = false;
    plan.client.eager = false;
    plan.client.password = true;
    plan.client.name = true;
    plan.client.database = 3;
    let mut world = unconnected(plan);
    let call = world.call(Command::set(0, 3));
    world.run_for(100_000);
    assert!(world.has_reply(call));
    let steps: Vec<&str> =
        world.servers.log.iter().map(|line| line.split(' ').next().unwrap_or("")).collect();
    assert_eq!(steps, ["HELLO", "AUTH", "CLIENT", "SELECT", "CLIENT", "CLIENT", "SET"]);
}

// F-21: optional steps may be refused.
#[test]
fn f21_optional_steps_are_refused() {
    let mut plan = Plan::calm();
    plan.server.refuses_optional = true;
    plan.client.name = true;
    let mut world = connected(plan);
    let call = world.call(Command::get(0));
    world.run_for(50_000);
    assert!(world.has_reply(call));
}

// F-23: the server loads for two seconds; the connection is not given out before SELECT succeeded.
#[test]
fn f23_a_server_that_loads() {
    let mut plan = Plan::calm();
    plan.server.loading_until = 2 * SECOND;
    plan.client.database = 3;
    plan.client.connect_timeout = 5 * SECOND;
    let mut world = unconnected(plan);
    let call = world.call(Command::set(0, 1));
    world.run_for(1990 * MS);
    assert_eq!((&world.threads[0].connected, world.runs(call)), (&None, 0));
    world.run_for(2 * SECOND);
    assert!(world.has_reply(call));
    assert_eq!(world.threads[0].net.connects, 1, "set-up waits on its connection");
    assert!(world.servers.stored(3, "a").is_some() && world.servers.stored(0, "a").is_none());
}

// F-23: loading longer than the connect timeout is told as what it is.
#[test]
fn f23_loading_for_too_long() {
    let mut plan = Plan::calm();
    plan.server.loading_until = 100 * SECOND;
    plan.client.database = 3;
    plan.client.connect_timeout = SECOND;
    let mut world = unconnected(plan);
    let call = world.call(Command::get(0));
    world.run_for(3 * SECOND);
    match world.context.ledger.outcome(call) {
        Some(End::Failed(Error::Server(error))) => assert_eq!(error.code(), "LOADING"),
        other => panic!("expected LOADING, got {other:?}"),
    }
}

// F-23: a connected client whose server begins to load: commands are answered, not executed, and the connection stays.
#[test]
fn f23_loading_on_a_live_connection() {
    let mut world = connected(Plan::calm());
    world.servers.plan.loading_until = world.context.now + 100 * MS;
    let call = world.call(Command::incr(0));
    world.run_for(200 * MS);
    assert_eq!(world.failed(call), Some(Delivery::NotExecuted));
    let next = world.call(Command::incr(0));
    world.run_for(50 * MS);
    assert!(world.has_reply(next));
    assert_eq!(world.threads[0].net.connects, 1);
}

// An eager connect is over when every connection has come up, not when one of two has come up twice.
#[test]
fn an_eager_connect_waits_for_each_connection() {
    let mut plan = Plan::calm();
    plan.client.connections = 2;
    plan.client.connect_timeout = 3 * SECOND;
    let mut world = unconnected(plan);
    world.run_for(1);
    let (first, second) = (
        world.threads[0].net.sockets.keys().next().copied(),
        world.threads[0].net.sockets.keys().nth(1).copied(),
    );
    // The second connects to nothing: it never answers.
    world.threads[0].net.sockets.get_mut(&second.expect("two sockets")).expect("there").stage =
        crate::socket::Stage::Failed;
    world.run_for(1500 * MS);
    assert_eq!(world.threads[0].connected, None);
    world.reset(0, first.expect("two sockets"));
    world.run_for(50 * MS);
    assert_eq!(world.threads[0].connected, None, "one connection has come up twice, the other never");
    world.run_for(3 * SECOND);
    assert!(matches!(world.threads[0].connected, Some(Err(_))));
}
