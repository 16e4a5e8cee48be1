//! Callers: small state machines that do what a future of the library does, and are polled only when their waker was
//! called (or when they begin or leave), so that a lost wake-up shows.

use crate::checkers::{Context, End, Line};
use crate::parts::{Command, Sizes};
use crate::plan::CrowdPlan;
use crate::rng::Rng;
use respiral::client::{Admission, ClientMachine, TicketId};
use respiral::error::Error;
use respiral::{Delivery, FromReply, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

/// A waker that remembers and counts.
#[derive(Default)]
pub struct Bell {
    rung: AtomicBool,
    count: AtomicU64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    pub fn ringing() -> Self {
        Self { rung: AtomicBool::new(true), count: AtomicU64::new(0) }
    }

    pub fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }

    pub fn take(&self) -> bool {
        self.rung.swap(false, Ordering::Relaxed)
    }
}

pub struct Active {
    ticket: TicketId,
    pub id: u64,
    command: Command,
    entered: bool,
    drop_at: Option<u64>,
}

enum State {
    Idle { until: u64 },
    Active(Active),
    Done,
}

struct Caller {
    state: State,
    bell: Arc<Bell>,
    waker: Waker,
    /// Makes one call after the other.
    goes_on: bool,
}

pub struct Crowd {
    plan: CrowdPlan,
    rng: Rng,
    callers: Vec<Caller>,
    /// Calls that were made, or left out.
    pub made: u64,
    /// Replies that callers have not let go of.
    kept: VecDeque<(u64, Reply)>,
}

impl Crowd {
    pub fn new(plan: CrowdPlan, mut rng: Rng) -> Self {
        let count = plan.callers;
        let mut this = Self { rng: rng.fork(), plan, callers: Vec::new(), made: 0, kept: VecDeque::new() };
        for _ in 0..count {
            let until = rng.range(0..=this.plan.pause_max);
            this.add(State::Idle { until }, true);
        }
        this
    }

    fn add(&mut self, state: State, goes_on: bool) -> usize {
        let bell = Arc::new(Bell::default());
        self.callers.push(Caller { state, waker: bell.clone().into(), bell, goes_on });
        self.callers.len() - 1
    }

    /// When somebody acts without being woken.
    pub fn next_act(&self) -> Option<u64> {
        let acts = self.callers.iter().filter_map(|caller| match &caller.state {
            State::Idle { until } => Some(*until),
            State::Active(active) => active.drop_at,
            State::Done => None,
        });
        acts.chain(self.kept.iter().map(|(until, _)| *until)).min()
    }

    pub fn is_rung(&self) -> bool {
        self.callers.iter().any(|caller| caller.bell.is_rung() && matches!(caller.state, State::Active(_)))
    }

    fn active(&self) -> impl Iterator<Item = &Active> {
        self.callers.iter().filter_map(|caller| match &caller.state {
            State::Active(active) => Some(active),
            _ => None,
        })
    }

    /// True when nobody will do anything more.
    pub fn is_done(&self) -> bool {
        self.callers.iter().all(|caller| matches!(caller.state, State::Done))
    }

    /// Calls that are not over.
    pub fn pending(&self) -> Vec<u64> {
        self.active().map(|active| active.id).collect()
    }

    pub fn keeps_replies(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Who waits and who does not.
    pub fn line(&self, machine: &mut ClientMachine) -> Line {
        let (mut waiting, mut let_in) = (Vec::new(), Vec::new());
        for active in self.active() {
            if active.entered || machine.is_granted(active.ticket) {
                let_in.push(active.id);
            } else if !machine.is_over(active.ticket) {
                waiting.push(active.id);
            }
        }
        waiting.sort_unstable();
        Line { waiting, let_in }
    }

    /// Nobody whose call is over or may go on is left asleep.
    pub fn check_wakes(&self, machine: &mut ClientMachine) {
        for caller in &self.callers {
            let State::Active(active) = &caller.state else { continue };
            let moves =
                machine.is_over(active.ticket) || !active.entered && machine.is_granted(active.ticket);
            assert!(!moves || caller.bell.is_rung(), "call {} is not woken (lost wake-up)", active.id);
        }
    }

    /// Nobody waits past a deadline when deadlines have just been served.
    pub fn check_deadlines(&self, machine: &mut ClientMachine, context: &Context) {
        for active in self.active() {
            let late = context.ledger.deadline(active.id).is_some_and(|at| at <= context.now);
            assert!(!late || machine.is_over(active.ticket), "call {} is past its deadline", active.id);
        }
    }

    pub fn stamp(&self, context: &mut Context) {
        for active in self.active() {
            context.ledger.stamp(active.id, context.now);
        }
    }

    /// One caller's call from outside the plan; tells its number.
    pub fn call(
        &mut self,
        command: Command,
        timeout: Option<u64>,
        machine: &mut ClientMachine,
        context: &mut Context,
    ) -> u64 {
        self.made += 1;
        let caller = self.add(State::Done, false);
        self.begin(caller, command, timeout, None, machine, context)
    }

    fn begin(
        &mut self,
        caller: usize,
        command: Command,
        timeout: Option<u64>,
        drop_at: Option<u64>,
        machine: &mut ClientMachine,
        context: &mut Context,
    ) -> u64 {
        let id = context.ledger.begin(context.now, timeout);
        context.trace.note(context.now, || format!("caller {caller} begins {command:?} as call {id}"));
        let caller = &mut self.callers[caller];
        let mut bytes = None;
        let encode = |log: &mut respiral::buf::Log| {
            let before = log.end();
            command.encode(id, log);
            bytes = Some(log.end() - before);
        };
        match machine.submit(timeout.map_or(Duration::MAX, Duration::from_micros), &caller.waker, encode) {
            None => {
                caller.state = State::Done;
                let closed = Error::Closed(Delivery::NotExecuted);
                context.ledger.end(id, context.now, End::Failed(closed));
            }
            Some((ticket, admission)) => {
                let entered = admission == Admission::Entered;
                assert_eq!(entered, bytes.is_some(), "written when it enters");
                if let Some(bytes) = bytes {
                    context.ledger.entered(id, bytes);
                }
                caller.bell.take();
                caller.state = State::Active(Active { ticket, id, command, entered, drop_at });
            }
        }
        id
    }

    /// The caller of a call goes away.
    pub fn drop_call(&mut self, id: u64, machine: &mut ClientMachine, context: &mut Context) {
        let found = self.callers.iter().position(|c| matches!(&c.state, State::Active(a) if a.id == id));
        if let Some(caller) = found {
            self.leave(caller, machine, context);
        }
    }

    fn leave(&mut self, caller: usize, machine: &mut ClientMachine, context: &mut Context) {
        let until = context.now + self.rng.range(0..=self.plan.pause_max);
        let caller = &mut self.callers[caller];
        let next = if caller.goes_on { State::Idle { until } } else { State::Done };
        let State::Active(active) = std::mem::replace(&mut caller.state, next) else { return };
        context.trace.note(context.now, || format!("call {} is dropped", active.id));
        context.ledger.end(active.id, context.now, End::Dropped);
        drop(machine.cancel(active.ticket));
    }

    /// Callers whose order is chance: those that were woken, and those whose time has come. `after` runs after each.
    pub fn act(
        &mut self,
        machine: &mut ClientMachine,
        context: &mut Context,
        mut after: impl FnMut(&Self, &mut ClientMachine),
    ) {
        self.kept.retain(|(until, _)| *until > context.now);
        let acts = |caller: &Caller| match &caller.state {
            State::Idle { until } => *until <= context.now,
            State::Active(active) => {
                caller.bell.is_rung() || active.drop_at.is_some_and(|at| at <= context.now)
            }
            State::Done => false,
        };
        let mut order: Vec<usize> =
            (0..self.callers.len()).filter(|index| acts(&self.callers[*index])).collect();
        self.rng.shuffle(&mut order);
        for index in order {
            let caller = &self.callers[index];
            match &caller.state {
                State::Idle { until } if *until <= context.now => self.next_call(index, machine, context),
                State::Active(active) if active.drop_at.is_some_and(|at| at <= context.now) => {
                    self.leave(index, machine, context);
                }
                State::Active(_) if caller.bell.take() => {
                    match caller.goes_on && self.rng.per_mille(self.plan.drops / 5) {
                        // Something else that it waited for has come, too.
                        true => self.leave(index, machine, context),
                        false => self.poll(index, machine, context),
                    }
                }
                _ => continue,
            }
            after(self, machine);
        }
    }

    fn next_call(&mut self, caller: usize, machine: &mut ClientMachine, context: &mut Context) {
        if context.now >= self.plan.until || self.made >= self.plan.calls_max {
            self.callers[caller].state = State::Done;
            return;
        }
        self.made += 1;
        context.asked += 1;
        // Its own stream, so that leaving one call out does not change the others.
        let rng = &mut self.rng.fork();
        let command = Command::random(rng, Sizes::from(&self.plan));
        let drops = rng.per_mille(self.plan.drops);
        let drop_at = drops.then(|| context.now + rng.range(0..=self.plan.drop_within));
        let own = rng.per_mille(self.plan.own_timeouts);
        let default = Some(machine.default_timeout()).filter(|timeout| *timeout < Duration::MAX);
        let default = default.map(|timeout| timeout.as_micros() as u64);
        let timeout = if own { Some(1000 + rng.range(0..=self.plan.drop_within)) } else { default };
        if context.cuts.has_call(context.asked) {
            let until = context.now + rng.range(1..=self.plan.pause_max.max(1));
            self.callers[caller].state = State::Idle { until };
            return;
        }
        self.begin(caller, command, timeout, drop_at, machine, context);
    }

    /// As `Call::poll` does.
    fn poll(&mut self, index: usize, machine: &mut ClientMachine, context: &mut Context) {
        let caller = &mut self.callers[index];
        let State::Active(active) = &mut caller.state else { return };
        let moves = machine.is_over(active.ticket) || !active.entered && machine.is_granted(active.ticket);
        let rung = caller.bell.count.load(Ordering::Relaxed);
        assert!(moves, "call {} is woken for nothing, at the {rung}th ring", active.id);
        if !active.entered && machine.is_granted(active.ticket) {
            let (id, mut bytes) = (active.id, None);
            let admission = machine.admit(active.ticket, |log| {
                let before = log.end();
                active.command.encode(id, log);
                bytes = Some(log.end() - before);
            });
            active.entered = admission == Admission::Entered;
            if let Some(bytes) = bytes {
                context.ledger.entered(id, bytes);
            }
        }
        match machine.take(active.ticket) {
            None => drop(machine.set_waker(active.ticket, &caller.waker)),
            Some(outcome) => {
                let until = context.now + self.rng.range(0..=self.plan.pause_max);
                let next = if caller.goes_on { State::Idle { until } } else { State::Done };
                let State::Active(active) = std::mem::replace(&mut caller.state, next) else { return };
                self.finish(active, outcome.and_then(Reply::from_payload), context);
            }
        }
    }

    fn finish(&mut self, active: Active, outcome: Result<Reply, Error>, context: &mut Context) {
        let id = active.id;
        match outcome {
            Err(error) => {
                context
                    .trace
                    .note(context.now, || format!("call {id} fails: {error} ({:?})", error.delivery()));
                context.ledger.end(id, context.now, End::Failed(error));
            }
            Ok(reply) => {
                context.trace.note(context.now, || format!("call {id} has its reply"));
                let value = reply.value().unwrap_or_else(|error| panic!("call {id}: {error}"));
                context.ledger.check_reply(id, &value);
                context.ledger.end(id, context.now, End::Reply);
                let keep = self.rng.range(0..=self.plan.keep_max);
                if keep > 0 {
                    self.kept.push_back((context.now + keep, reply));
                }
            }
        }
    }
}
