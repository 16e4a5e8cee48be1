//! The world of one seed: threads with their clients, a model network and model servers, on a virtual clock.

use crate::checkers::{Context, Counts, End, Ledger};
use crate::faults;
use crate::parts::Command;
use crate::plan::{Plan, SECOND};
use crate::rng::Rng;
use crate::servers::Servers;
use crate::shrink::Cuts;
use crate::thread::Thread;
use crate::trace::Trace;
use std::collections::BTreeMap;

type Later = fn(&mut World);

pub struct World {
    pub plan: Plan,
    pub rng: Rng,
    pub context: Context,
    pub servers: Servers,
    pub threads: Vec<Thread>,
    later: BTreeMap<(u64, u64), Later>,
    laters: u64,
    next_fault: Option<u64>,
    /// Faults that struck, or were left out.
    pub strikes: u64,
    close_at: Option<u64>,
    steps: u64,
}

impl World {
    /// More turns than any honest run takes.
    const STEPS_MAX: u64 = 3_000_000;

    pub fn new(plan: Plan, trace: Trace) -> Self {
        Self::without(plan, Cuts::default(), trace)
    }

    /// A smaller world.
    pub fn without(mut plan: Plan, cuts: Cuts, trace: Trace) -> Self {
        cuts.simplify(&mut plan);
        let mut rng = Rng::new(plan.seed ^ 0x5eed);
        let context = Context { now: 0, trace, cuts, asked: 0, ledger: Ledger::default(), rng: rng.fork() };
        let threads = plan.clients().enumerate();
        Self {
            servers: Servers::new(&plan),
            threads: threads.map(|(index, client)| Thread::new(index, &plan, client, rng.fork())).collect(),
            next_fault: plan.fault_every.map(|every| rng.range(1..=2 * every)),
            rng,
            context,
            later: BTreeMap::new(),
            laters: 0,
            strikes: 0,
            close_at: plan.close_at,
            steps: 0,
            plan,
        }
    }

    /// Does something at a later time.
    pub fn later(&mut self, at: u64, what: Later) {
        self.laters += 1;
        self.later.insert((at, self.laters), what);
    }

    fn next_time(&self) -> Option<u64> {
        let now = self.context.now;
        let threads = self.threads.iter().filter_map(|thread| thread.next_time(now));
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        threads.chain(self.next_fault).chain(later).chain(self.close_at).min().map(|at| at.max(now))
    }

    /// What happens at the next time at which something does, if that is before `limit`.
    pub fn step(&mut self, limit: u64) -> bool {
        let Some(next) = self.next_time().filter(|at| *at < limit) else {
            self.context.now = self.context.now.max(limit.min(u64::MAX - 1));
            return false;
        };
        self.context.now = next;
        self.steps += 1;
        if self.steps >= Self::STEPS_MAX {
            let threads: Vec<String> = self.threads.iter().map(Thread::describe).collect();
            panic!("the world never comes to rest at {}: {threads:?}", self.context.now);
        }
        self.happen();
        let faulty = self.plan.fault_every.is_some();
        let first = self.rng.index(self.threads.len());
        for at in 0..self.threads.len() {
            let thread = (first + at) % self.threads.len();
            self.threads[thread].step(&mut self.context, &mut self.servers, faulty);
        }
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
        if self.close_at.is_some_and(|at| at <= self.context.now) {
            self.close_at = None;
            self.threads[0].close(&mut self.context);
        }
    }

    // --- for scenarios: the first thread

    pub fn run_for(&mut self, time: u64) {
        let limit = self.context.now + time;
        while self.step(limit) {}
    }

    /// Begins a call with the client's timeout.
    pub fn call(&mut self, command: Command) -> u64 {
        self.call_within(command, self.plan.client.command_timeout)
    }

    pub fn call_within(&mut self, command: Command, timeout: Option<u64>) -> u64 {
        self.threads[0].call(command, timeout, &mut self.context)
    }

    pub fn drop_call(&mut self, id: u64) {
        self.threads[0].drop_call(id, &mut self.context);
    }

    pub fn close(&mut self) {
        self.threads[0].close(&mut self.context);
    }

    // --- the two phases

    /// Trouble first, then a world in which everything must come right in bounded time.
    pub fn run(&mut self) -> Counts {
        while !self.threads.iter().all(|thread| thread.crowd.is_done()) && self.step(self.plan.heal_at) {}
        self.context.ledger.counts.time = self.context.now;
        self.heal();
        self.settle("every pending call ends");
        self.check_rest();
        self.recover();
        self.check_rest();
        for thread in &mut self.threads {
            thread.close(&mut self.context);
        }
        self.settle("the clients close");
        self.check_rest();
        self.threads.iter_mut().for_each(|thread| thread.check_closed(&mut self.context));
        self.context.ledger.counts
    }

    fn heal(&mut self) {
        self.context.trace.note(self.context.now, || "faults end".into());
        self.next_fault = None;
        self.close_at = None;
        self.later.clear();
        self.servers.heal();
        for thread in &mut self.threads {
            thread.hogged.clear();
            thread.busy_until = 0;
            thread.net.heal(&mut self.context, &mut self.servers);
        }
    }

    /// Until nothing happens any more.
    fn settle(&mut self, what: &str) {
        // Commands in line each take a round trip at worst, and big ones several.
        let bound = self.context.now + 3_000 * self.plan.net.unit().max(10_000);
        while self.step(bound) {}
        let pending: Vec<u64> = self.threads.iter().flat_map(|thread| thread.crowd.pending()).collect();
        assert!(pending.is_empty(), "not in bounded time: {what}; calls {pending:?} are left");
        assert_eq!(self.next_time(), None, "not in bounded time: {what}");
        self.context.now = self.context.now.min(bound);
    }

    /// Full service for everybody: calls succeed, and soon on every connection.
    fn recover(&mut self) {
        for index in 0..self.threads.len() {
            let mut served = false;
            // The first call may find a connection that failed while nobody asked, and a pool that serves with some of its
            // connections tries the others once a second (RECON-011).
            for _ in 0..5 {
                if self.threads[index].is_closing() || served && self.threads[index].is_whole() {
                    break;
                }
                let id = self.threads[index].call(Command::echo(10), None, &mut self.context);
                self.settle("a fresh call ends");
                served |= self.context.ledger.outcome(id) == Some(&End::Reply);
                self.context.now += SECOND + 1;
            }
            let thread = &self.threads[index];
            assert!(thread.is_closing() || served, "a fresh call does not succeed after the faults");
            assert!(thread.is_closing() || thread.is_whole(), "connections that never come back");
        }
    }

    fn check_rest(&mut self) {
        for (thread, pushes) in self.threads.iter_mut().zip(&self.servers.pushes) {
            thread.check_rest(*pushes);
        }
    }
}
