//! The world of one seed: the client's machine between model callers, a model network and a model server, on a virtual
//! clock. [`World::step`] is one turn of a driver.

use crate::checkers::{Context, Counts, Ledger, check_line};
use crate::faults;
use crate::net::Net;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::server::Server;
use crate::trace::Trace;
use crate::wire::Command;
use crate::workload::{Bell, Crowd};
use respiral::buf::{BufferPool, Segment};
use respiral::client::ClientMachine;
use respiral::{PushListener, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The zero of virtual time. Only differences count.
#[expect(
    clippy::disallowed_methods,
    reason = "an instant can be had in no other way; nothing else reads the clock"
)]
fn zero() -> Instant {
    static ZERO: OnceLock<Instant> = OnceLock::new();
    *ZERO.get_or_init(Instant::now)
}

type Later = fn(&mut World);

pub struct World {
    pub plan: Plan,
    pub rng: Rng,
    pub context: Context,
    pub machine: ClientMachine,
    pub pool: BufferPool,
    pub net: Net,
    pub server: Server,
    pub crowd: Crowd,
    pub listener: Option<PushListener>,
    /// Numbers of the push messages that were heard.
    pub heard: Vec<i64>,
    pub hogged: Vec<Segment>,
    later: BTreeMap<(u64, u64), Later>,
    laters: u64,
    next_fault: Option<u64>,
    closing: bool,
    /// The eager connect, until it has an answer.
    connecting: Option<Arc<Bell>>,
    pub connected: Option<Result<(), respiral::Error>>,
    ever_ready: BTreeSet<usize>,
    steps: u64,
    /// Somebody asked for something since the last flush.
    nudged: bool,
}

impl World {
    /// More turns than any honest run takes.
    const STEPS_MAX: u64 = 3_000_000;

    pub fn new(plan: Plan, trace: Trace) -> Self {
        let mut rng = Rng::new(plan.seed ^ 0x5eed);
        let pool = BufferPool::new(plan.buffers.0, plan.buffers.1);
        let mut machine = ClientMachine::new(&plan.options(), Some(pool.clone())).expect("valid options");
        let listener = rng.coin().then(|| machine.listen(8));
        let net = Net::new(&plan, rng.fork(), pool.clone());
        let context = Context { now: 0, trace, ledger: Ledger::default(), rng: rng.fork() };
        let connecting = plan.client.eager.then(|| {
            machine.connect();
            let bell = Arc::new(Bell::default());
            assert!(machine.poll_connected(0, &Waker::from(bell.clone())).is_pending());
            bell
        });
        Self {
            server: Server::new(&plan),
            crowd: Crowd::new(plan.crowd.clone(), rng.fork()),
            next_fault: plan.fault_every.map(|every| rng.range(1..=2 * every)),
            rng,
            context,
            machine,
            pool,
            net,
            listener,
            heard: Vec::new(),
            hogged: Vec::new(),
            later: BTreeMap::new(),
            laters: 0,
            closing: false,
            connecting,
            connected: None,
            ever_ready: BTreeSet::new(),
            steps: 0,
            nudged: true,
            plan,
        }
    }

    fn instant(&self) -> Instant {
        zero() + Duration::from_micros(self.context.now)
    }

    /// Does something at a later time.
    pub fn later(&mut self, at: u64, what: Later) {
        self.laters += 1;
        self.later.insert((at, self.laters), what);
    }

    // --- one turn

    fn next_time(&self) -> Option<u64> {
        let now = self.context.now;
        let busy = self.nudged
            || !self.net.inbox.is_empty()
            || self.machine.needs_turn()
            || self.crowd.is_rung()
            || self.net.is_starved() && self.pool.free() > 0;
        if busy {
            return Some(now);
        }
        // Rounded up: a turn before a deadline does nothing.
        let deadline = self.machine.next_deadline().map(|at| (at - zero()).as_nanos().div_ceil(1000) as u64);
        let times = [self.net.next_event(), deadline, self.crowd.next_act(), self.next_fault];
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        let close = self.plan.close_at.filter(|_| !self.closing);
        times.into_iter().flatten().chain(later).chain(close).min().map(|at| at.max(now))
    }

    /// One turn, at the next time at which something happens, if that is before `limit`.
    pub fn step(&mut self, limit: u64) -> bool {
        let Some(next) = self.next_time().filter(|at| *at < limit) else {
            self.context.now = self.context.now.max(limit.min(u64::MAX - 1));
            return false;
        };
        self.context.now = next;
        self.steps += 1;
        assert!(
            self.steps < Self::STEPS_MAX,
            "the world never comes to rest: nudged {}, inbox {}, needs turn {}, rung {}, deadline {:?} at {}",
            self.nudged,
            self.net.inbox.len(),
            self.machine.needs_turn(),
            self.crowd.is_rung(),
            self.machine.next_deadline().map(|at| (at - zero()).as_micros() as u64),
            self.context.now
        );
        self.happen();
        self.net.run(&mut self.context, &mut self.server);
        // Other tasks of the thread run when they like.
        if self.rng.coin() {
            self.callers();
        }
        self.turn();
        // Some of those who were called are busy elsewhere; their places go to others.
        let absent = self.plan.fault_every.is_some() && self.rng.per_mille(100);
        if !absent {
            self.callers();
        }
        self.flush();
        self.check();
        true
    }

    fn happen(&mut self) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= self.context.now) {
            entry.remove()(self);
        }
        if self.next_fault.is_some_and(|at| at <= self.context.now) {
            let every = self.plan.fault_every.unwrap_or(1);
            self.next_fault = Some(self.context.now + self.rng.range(1..=2 * every.max(1)));
            faults::strike(self);
        }
        if self.plan.close_at.is_some_and(|at| at <= self.context.now) {
            self.close();
        }
    }

    fn turn(&mut self) {
        let now = self.instant();
        self.in_line(|world| world.machine.pass_absent());
        for _ in 0..self.plan.turn_budget {
            let Some(completion) = self.net.inbox.pop_front() else { break };
            self.in_line(|world| world.machine.handle(now, completion));
            self.note_ready();
        }
        // H18: deadlines only when the input is dry.
        let dry = self.net.inbox.is_empty();
        if dry && self.machine.next_deadline().is_some_and(|at| at <= now) {
            self.in_line(|world| world.machine.handle_timeout(now));
            let rest = self.machine.next_deadline();
            assert!(rest.is_none_or(|at| at > now), "a deadline is served and still due: a busy loop");
        }
        self.wake();
        if dry {
            self.crowd.check_deadlines(&mut self.machine, &self.context);
        }
    }

    /// Does something after which the line must be in order.
    fn in_line(&mut self, what: impl FnOnce(&mut Self)) {
        if self.machine.held().1 == 0 {
            return what(self);
        }
        let before = self.crowd.line(&mut self.machine);
        what(self);
        check_line(&before, &self.crowd.line(&mut self.machine));
    }

    fn note_ready(&mut self) {
        let ready = self.machine.loads().enumerate().filter(|(_, load)| load.is_ready);
        self.ever_ready.extend(ready.map(|(index, _)| index));
    }

    fn wake(&mut self) {
        let mut wakers = Vec::new();
        self.machine.take_wakers(&mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        self.crowd.check_wakes(&mut self.machine);
        self.poll_connected();
        let listener = self.listener.iter_mut();
        for message in listener.flat_map(|listener| std::iter::from_fn(|| listener.try_next())) {
            let number = match &message {
                Value::Push(items) => items.get(1).cloned(),
                _ => None,
            };
            let Some(Value::Integer(number)) = number else { panic!("a push that nobody sent: {message:?}") };
            self.heard.push(number);
        }
    }

    fn poll_connected(&mut self) {
        let Some(bell) = self.connecting.clone().filter(|bell| bell.take()) else { return };
        if let Poll::Ready(result) = self.machine.poll_connected(0, &Waker::from(bell)) {
            self.connecting = None;
            let all = self.ever_ready.len() == self.plan.client.connections as usize;
            assert!(result.is_err() || all, "connected, but only {:?} have been ready", self.ever_ready);
            self.context.trace.note(self.context.now, || format!("eager connect: {result:?}"));
            self.connected = Some(result);
        }
    }

    fn callers(&mut self) {
        let mut before = self.crowd.line(&mut self.machine);
        self.crowd.act(&mut self.machine, &mut self.context, |crowd, machine| {
            let now = crowd.line(machine);
            check_line(&before, &now);
            before = now;
        });
    }

    fn flush(&mut self) {
        self.nudged = false;
        let now = self.instant();
        self.machine.stamp(now);
        self.crowd.stamp(&mut self.context);
        while let Some(op) = self.machine.poll_op(now) {
            self.net.submit(op, &mut self.context);
        }
    }

    fn check(&mut self) {
        self.wake();
        let client = &self.plan.client;
        let (_, in_line, _) = self.machine.held();
        for (index, load) in self.machine.loads().enumerate() {
            assert!(
                load.in_flight <= client.in_flight_max,
                "too many commands on {index}: {load:?} (CONN-040)"
            );
            let most = client.queued_bytes_max - 1 + self.context.ledger.largest_frame;
            assert!(load.bytes <= most, "too many bytes on {index}: {load:?} (CONN-040)");
            assert!(
                in_line == 0 || !load.has_room,
                "{in_line} calls wait and there is room on {index}: {load:?}"
            );
        }
    }

    // --- for scenarios

    pub fn run_for(&mut self, time: u64) {
        let limit = self.context.now + time;
        while self.step(limit) {}
    }

    /// Begins a call with the client's timeout.
    pub fn call(&mut self, command: Command) -> u64 {
        self.call_within(command, self.plan.client.command_timeout)
    }

    pub fn call_within(&mut self, command: Command, timeout: Option<u64>) -> u64 {
        self.nudged = true;
        self.crowd.call(command, timeout, &mut self.machine, &mut self.context)
    }

    pub fn drop_call(&mut self, id: u64) {
        self.nudged = true;
        self.crowd.drop_call(id, &mut self.machine, &mut self.context);
    }

    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closing, true) {
            self.context.trace.note(self.context.now, || "the client is closed".into());
        }
        self.nudged = true;
        // Twice does no harm.
        self.machine.close();
        self.machine.close();
    }

    // --- the two phases

    /// Trouble first, then a world in which everything must come right in bounded time.
    pub fn run(&mut self) -> Counts {
        while !self.crowd.is_done() && self.step(self.plan.heal_at) {}
        self.heal();
        self.settle("every pending call ends");
        self.check_rest();
        if !self.closing {
            self.fresh_call();
            self.check_rest();
            self.close();
        }
        self.settle("the client closes");
        self.check_closed();
        self.context.ledger.counts
    }

    fn heal(&mut self) {
        self.context.trace.note(self.context.now, || "faults end".into());
        self.next_fault = None;
        self.later.clear();
        self.hogged.clear();
        self.server.up = true;
        self.server.garbage = false;
        self.server.plan.loading_until = 0;
        self.server.plan.holds_info_until = 0;
        self.net.heal(&mut self.context, &mut self.server);
    }

    /// Until nothing happens any more.
    fn settle(&mut self, what: &str) {
        // Commands in line each take a round trip at worst, and big ones several.
        let bound = self.context.now + 3_000 * self.plan.net.unit().max(10_000);
        while self.step(bound) {}
        let pending = self.crowd.pending();
        assert!(pending.is_empty(), "not in bounded time: {what}; calls {pending:?} are left");
        assert_eq!(self.next_time(), None, "not in bounded time: {what}");
        self.context.now = self.context.now.min(bound);
    }

    fn fresh_call(&mut self) {
        // The first may find a connection that failed while nobody asked (RECON-011).
        for _ in 0..3 {
            let id = self.call_within(Command::Echo { size: 10 }, None);
            self.settle("a fresh call ends");
            if self.context.ledger.outcome(id) == Some(&crate::checkers::End::Reply) {
                return;
            }
        }
        panic!("a fresh call does not succeed after the faults");
    }

    /// At rest nothing is held anywhere.
    fn check_rest(&mut self) {
        assert_eq!(self.machine.held(), (0, 0, 0), "tickets, calls in line, reservations");
        assert!(!self.crowd.keeps_replies());
        assert_eq!(self.pool.lent(), 0, "buffers that are never given back");
        for (index, load) in self.machine.loads().enumerate() {
            assert_eq!((load.in_flight, load.bytes), (0, 0), "left on connection {index}: {load:?}");
        }
        let mut ordered = self.heard.clone();
        ordered.sort_unstable();
        ordered.dedup();
        assert_eq!(ordered.len(), self.heard.len(), "a push message is heard twice");
        assert!(self.machine.pushes_seen() <= self.server.pushes, "more pushes than were sent");
    }

    fn check_closed(&mut self) {
        assert!(self.machine.is_closed(), "the client is not closed");
        self.check_rest();
        assert_eq!(self.net.connects, self.net.closes, "every socket is closed once");
        let id = self.call(Command::Fail);
        assert!(self.context.ledger.outcome(id).is_some(), "a closed client refuses at once");
        assert!(self.machine.poll_op(self.instant()).is_none());
    }
}
