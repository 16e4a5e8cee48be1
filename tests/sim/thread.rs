//! One thread of a service: its client's machine, its callers and its kernel. [`Thread::turn`] is one turn of a driver.

use crate::checkers::{Context, check_line};
use crate::net::Net;
use crate::parts::Command;
use crate::plan::{ClientPlan, Plan, SECOND};
use crate::rng::Rng;
use crate::servers::Servers;
use crate::socket::Stage;
use crate::workload::{Bell, Crowd};
use respiral::buf::{BufferPool, Segment};
use respiral::client::ClientMachine;
use respiral::io::Completion;
use respiral::{PushListener, Value};
use std::collections::BTreeSet;
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

pub fn instant(now: u64) -> Instant {
    zero() + Duration::from_micros(now)
}

pub struct Thread {
    pub client: ClientPlan,
    pub machine: ClientMachine,
    pub pool: BufferPool,
    pub net: Net,
    pub crowd: Crowd,
    pub listener: Option<PushListener>,
    /// Rung when there is something to hear; at first to ask for that.
    hear: Arc<Bell>,
    /// Numbers of the push messages that were heard.
    pub heard: Vec<i64>,
    pub hogged: Vec<Segment>,
    /// The eager connect, until it has an answer, and that.
    connecting: Option<Arc<Bell>>,
    pub connected: Option<Result<(), respiral::Error>>,
    /// Something else has the thread until then; the kernel goes on.
    pub busy_until: u64,
    ever_ready: BTreeSet<usize>,
    /// Since when each connection owes replies and nothing has come.
    silent_since: Vec<Option<u64>>,
    /// When each connection was last told something.
    told_at: Vec<u64>,
    /// Somebody asked for something since the last flush.
    nudged: bool,
    /// When it acts by itself, as known after its last turn.
    next_act: Option<u64>,
    closing: bool,
    turn_budget: usize,
    /// Turns in a row that left completions.
    busy: u32,
    unit: u64,
    rng: Rng,
}

impl Thread {
    pub fn new(index: usize, plan: &Plan, client: &ClientPlan, mut rng: Rng) -> Self {
        let pool = BufferPool::new(plan.buffers.0, plan.buffers.1);
        let mut machine =
            ClientMachine::new(&plan.options(client), Some(pool.clone())).expect("valid options");
        machine.set_dials_max(client.dials_max);
        let listener = rng.coin().then(|| machine.listen(8));
        let connecting = client.eager.then(|| {
            machine.connect();
            let bell = Arc::new(Bell::default());
            assert!(machine.poll_connected(0, &Waker::from(bell.clone())).is_pending());
            bell
        });
        Self {
            net: Net::new(index, plan, rng.fork(), pool.clone()),
            crowd: Crowd::new(plan.crowd.clone(), rng.fork()),
            client: client.clone(),
            machine,
            pool,
            listener,
            hear: Arc::new(Bell::ringing()),
            heard: Vec::new(),
            hogged: Vec::new(),
            connecting,
            connected: None,
            busy_until: 0,
            ever_ready: BTreeSet::new(),
            silent_since: vec![None; client.connections as usize],
            told_at: vec![0; client.connections as usize],
            nudged: true,
            next_act: None,
            closing: false,
            turn_budget: plan.turn_budget,
            busy: 0,
            unit: plan.net.unit(),
            rng,
        }
    }

    // --- when

    /// When the thread acts by itself.
    fn look_ahead(&self, now: u64) -> Option<u64> {
        if self.machine.needs_turn() || self.crowd.is_rung() {
            return Some(now);
        }
        // Rounded up: a turn before a deadline does nothing.
        let deadline = self.machine.next_deadline().map(|at| (at - zero()).as_nanos().div_ceil(1000) as u64);
        deadline.into_iter().chain(self.crowd.next_act()).min()
    }

    /// When the thread has something to do.
    fn next_turn(&self, now: u64) -> Option<u64> {
        let is_called =
            self.nudged || !self.net.inbox.is_empty() || self.net.is_starved() && self.pool.free() > 0;
        let at = if is_called { now } else { self.next_act? };
        Some(at.max(now).max(self.busy_until))
    }

    /// When the thread or its kernel has something to do.
    pub fn next_time(&self, now: u64) -> Option<u64> {
        self.next_turn(now).into_iter().chain(self.net.next_event().map(|at| at.max(now))).min()
    }

    /// What is said of a thread that never comes to rest.
    pub fn describe(&self) -> String {
        format!(
            "nudged {}, inbox {}, needs turn {}, rung {}, deadline {:?}",
            self.nudged,
            self.net.inbox.len(),
            self.machine.needs_turn(),
            self.crowd.is_rung(),
            self.machine.next_deadline().map(|at| (at - zero()).as_micros() as u64),
        )
    }

    // --- one turn

    /// The kernel goes on, and the thread has a turn if there is something to do.
    pub fn step(&mut self, context: &mut Context, servers: &mut Servers, faulty: bool) {
        self.net.run(context, servers);
        if self.next_turn(context.now).is_none_or(|at| at > context.now) {
            return;
        }
        // Other tasks of the thread run when they like.
        if self.rng.coin() {
            self.callers(context);
        }
        self.turn(context);
        // Some of those who were called are busy elsewhere; their places go to others.
        let absent = faulty && self.rng.per_mille(100);
        if !absent {
            self.callers(context);
        }
        self.flush(context);
        self.check(context);
        self.next_act = self.look_ahead(context.now);
    }

    fn turn(&mut self, context: &mut Context) {
        let now = instant(context.now);
        self.in_line(|this| this.machine.pass_absent());
        for _ in 0..self.turn_budget {
            let Some(completion) = self.net.inbox.pop_front() else { break };
            // What is said of an earlier socket, and how much was sent, is no sign of life.
            let is_heard =
                !matches!(completion, Completion::Sent { .. }) && self.net.is_newest(completion.id());
            if is_heard {
                let index = usize::from(completion.id().index);
                self.silent_since[index] = None;
                self.told_at[index] = context.now;
            }
            self.in_line(|this| this.machine.handle(now, completion));
            let ready = self.machine.loads().enumerate().filter(|(_, load)| load.is_ready);
            self.ever_ready.extend(ready.map(|(index, _)| index));
        }
        // H18: deadlines only when the input is dry.
        let dry = self.net.inbox.is_empty();
        // As the driver does: after so many turns that left something they are served all the same.
        self.busy = if dry { 0 } else { self.busy + 1 };
        let serves = dry || self.busy > 8;
        if serves && self.machine.next_deadline().is_some_and(|at| at <= now) {
            self.in_line(|this| this.machine.handle_timeout(now));
            let rest = self.machine.next_deadline();
            assert!(rest.is_none_or(|at| at > now), "a deadline is served and still due: a busy loop");
        }
        self.wake(context);
        if serves {
            self.busy = 0;
            self.crowd.check_deadlines(&mut self.machine, context);
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

    fn wake(&mut self, context: &mut Context) {
        let mut wakers = Vec::new();
        self.machine.take_wakers(&mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        self.crowd.check_wakes(&mut self.machine);
        self.poll_connected(context);
        drop(self.machine.returns().take());
        self.listen();
    }

    fn listen(&mut self) {
        let Some(listener) = self.listener.as_mut().filter(|_| self.hear.take()) else { return };
        let waker = Waker::from(self.hear.clone());
        while let Poll::Ready(Some(message)) = listener.poll_next(&mut std::task::Context::from_waker(&waker))
        {
            let number = match &message {
                Value::Push(items) => items.get(1).cloned(),
                _ => None,
            };
            let Some(Value::Integer(number)) = number else { panic!("a push that nobody sent: {message:?}") };
            self.heard.push(number);
        }
    }

    fn poll_connected(&mut self, context: &mut Context) {
        let Some(bell) = self.connecting.clone().filter(|bell| bell.take()) else { return };
        if let Poll::Ready(result) = self.machine.poll_connected(0, &Waker::from(bell)) {
            self.connecting = None;
            let all = self.ever_ready.len() == self.client.connections as usize;
            assert!(result.is_err() || all, "connected, but only {:?} have been ready", self.ever_ready);
            context.trace.note(context.now, || format!("eager connect: {result:?}"));
            self.connected = Some(result);
        }
    }

    fn callers(&mut self, context: &mut Context) {
        let mut before = self.crowd.line(&mut self.machine);
        self.crowd.act(&mut self.machine, context, |crowd, machine| {
            let now = crowd.line(machine);
            check_line(&before, &now);
            before = now;
        });
    }

    fn flush(&mut self, context: &mut Context) {
        self.nudged = false;
        let now = instant(context.now);
        self.machine.stamp(now);
        self.crowd.stamp(context);
        while let Some(op) = self.machine.poll_op(now) {
            self.net.submit(op, context);
        }
    }

    fn check(&mut self, context: &mut Context) {
        self.wake(context);
        let client = &self.client;
        let (_, in_line, _) = self.machine.held();
        for (index, load) in self.machine.loads().enumerate() {
            assert!(
                load.in_flight <= client.in_flight_max,
                "too many commands on {index}: {load:?} (CONN-040)"
            );
            let most = client.queued_bytes_max - 1 + context.ledger.largest_frame;
            assert!(load.bytes <= most, "too many bytes on {index}: {load:?} (CONN-040)");
            assert!(
                in_line == 0 || !load.has_room,
                "{in_line} calls wait and there is room on {index}: {load:?}"
            );
            let since = &mut self.silent_since[index];
            let socket = self.net.newest(index as u16);
            let owes = load.is_ready && socket.is_some_and(|socket| context.ledger.owes(socket));
            *since = owes.then(|| since.unwrap_or(context.now));
        }
        if self.net.inbox.is_empty() {
            self.check_patience(context.now);
        }
    }

    /// Nothing is waited for beyond its limit.
    fn check_patience(&self, now: u64) {
        let unit = self.unit;
        if let Some(timeout) = self.client.idle_read_timeout {
            // The limit counts from when the engine has the command.
            let late = |since: &Option<u64>| since.is_some_and(|since| now > since + timeout + unit);
            let silent = self.silent_since.iter().position(late);
            assert_eq!(silent, None, "a silent connection is kept (CONN-032)");
        }
        let made = self.net.sockets.iter().filter(|(id, socket)| {
            let is_up = self.machine.loads().nth(id.index.into()).is_some_and(|load| load.is_ready);
            matches!(socket.stage, Stage::Connecting | Stage::Open) && !socket.closing && !is_up
        });
        let (made, most) = (made.count(), self.client.dials_max);
        assert!(made <= most, "{made} connections are made at a time, of {most} (H40)");
        for (id, socket) in &self.net.sockets {
            let waits = socket.stage == Stage::Connecting && !socket.closing;
            let late = now > socket.begun + self.client.connect_timeout;
            assert!(!(waits && late), "{id:?} still waits for an answer (RECON-009)");
            // CONN-048; a server that loads has the time of connecting.
            let index = usize::from(id.index);
            let is_set_up = self.machine.loads().nth(index).is_some_and(|load| load.is_ready);
            let reply = self.told_at[index] + self.client.command_timeout.unwrap_or(0);
            let late = now > reply.max(socket.begun + self.client.connect_timeout);
            let waits = socket.stage == Stage::Open && !socket.closing && !is_set_up;
            assert!(!(waits && late), "set-up of {id:?} waits for ever (CONN-048)");
        }
    }

    /// Nobody is dialled without a cause: a call, a loss, or a second that has passed for a pool that serves.
    fn check_dials(&self, now: u64) {
        let causes =
            u64::from(self.client.connections) * (2 + self.crowd.made + now / SECOND) + self.net.opened;
        let most = causes * Net::ADDRESSES_MAX;
        assert!(self.net.connects <= most, "{} dials for {causes} causes (RECON-011)", self.net.connects);
    }

    // --- from outside

    /// Begins a call.
    pub fn call(&mut self, command: Command, timeout: Option<u64>, context: &mut Context) -> u64 {
        self.nudged = true;
        self.crowd.call(command, timeout, &mut self.machine, context)
    }

    pub fn drop_call(&mut self, id: u64, context: &mut Context) {
        self.nudged = true;
        self.crowd.drop_call(id, &mut self.machine, context);
    }

    pub fn is_closing(&self) -> bool {
        self.closing
    }

    pub fn close(&mut self, context: &mut Context) {
        if !std::mem::replace(&mut self.closing, true) {
            context.trace.note(context.now, || "the client is closed".into());
        }
        self.nudged = true;
        // Twice does no harm.
        self.machine.close();
        self.machine.close();
    }

    /// Every connection is up.
    pub fn is_whole(&self) -> bool {
        self.machine.loads().all(|load| load.is_ready)
    }

    /// At rest nothing is held anywhere.
    pub fn check_rest(&mut self, pushes_sent: u64) {
        assert_eq!(self.machine.held(), (0, 0, 0), "tickets, calls in line, reservations");
        assert!(!self.crowd.keeps_replies());
        assert_eq!(self.pool.lent(), 0, "buffers that are never given back");
        assert!(self.machine.returns().is_empty(), "values that were lent and are never given back");
        for (index, load) in self.machine.loads().enumerate() {
            assert_eq!((load.in_flight, load.bytes), (0, 0), "left on connection {index}: {load:?}");
        }
        let unheard = self.listener.as_mut().and_then(PushListener::try_next);
        assert_eq!(unheard, None, "a push waits, and its listener was not woken");
        let mut ordered = self.heard.clone();
        ordered.sort_unstable();
        ordered.dedup();
        assert_eq!(ordered.len(), self.heard.len(), "a push message is heard twice");
        assert!(self.machine.pushes_seen() <= pushes_sent, "more pushes than were sent");
    }

    pub fn check_closed(&mut self, context: &mut Context) {
        assert!(self.machine.is_closed(), "the client is not closed");
        assert!(self.connecting.is_none(), "an eager connect is not told its end");
        self.check_dials(context.now);
        assert_eq!(self.net.connects, self.net.closes, "every socket is closed once");
        let id = self.call(Command::fail(), None, context);
        assert!(context.ledger.outcome(id).is_some(), "a closed client refuses at once");
        assert!(self.machine.poll_op(instant(context.now)).is_none());
    }
}
