//! What the handles of one client own together: the machine, the engine, and the waits for descriptors.
//!
//! Handles and calls hold it by `Rc`, the driver task by `Weak`: it lives as long as somebody can ask for something.
//! The waits live here too, not on the driver's stack, because a runtime may leak a
//! parked task and everything on it (H4).
//!
//! User code (wakers, and whatever dropping one drops) runs only while nothing here is borrowed (H15).

use super::resolve::LookUps;
use super::runtime::Runtime;
use super::wait::Wait;
use crate::client::{ClientMachine, ConnectOptions, PushListener};
use crate::engine::{AnyEngine, Engine, EngineInfo, Process, TimerFd};
use crate::error::{Error, Result};
use crate::id::ConnectionId;
use crate::io::{Completion, Op};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Turns that may put deadlines off because more has arrived (H18).
const BUSY_MAX: u32 = 8;

/// Completions per turn. Each can carry a buffer full of replies.
const TURN_BUDGET: usize = 64;

pub(crate) struct Shared {
    core: RefCell<Core>,
    info: EngineInfo,
    /// Who made it: in a forked child sockets and queues are the parent's (H7).
    process: Process,
    /// How long to look for replies before the thread sleeps.
    spin: Duration,
    wait: Wait,
    breath: Wait,
    driver: RefCell<Option<Waker>>,
    /// The driver will look at the machine's operations by itself; nobody has to wake it.
    will_flush: Cell<bool>,
    driver_never_ran: Cell<bool>,
    driver_gone: Cell<bool>,
    /// Those who wait for the driver to be gone.
    joiners: RefCell<Vec<Waker>>,
    /// Kept between turns for its capacity.
    wakers: Cell<Vec<Waker>>,
}

pub(crate) struct Core {
    pub machine: ClientMachine,
    /// `None` after the end.
    engine: Option<AnyEngine>,
    /// See [`Breath`](super::breath::Breath). `None` after the end.
    breath: Option<TimerFd>,
    look_ups: LookUps,
    completions: Vec<Completion>,
    /// Host names to be looked up when nothing is borrowed: resolvers are user code.
    names: Vec<(ConnectionId, Rc<str>, u16)>,
    /// Turns in a row that left something: deadlines are served after a few all the same.
    busy: u32,
}

/// What a turn did.
pub(super) struct Turn {
    /// Callers were woken: let them run before the flush, so that their next commands leave together.
    pub woke: bool,
    /// The engine has more.
    pub more: bool,
    /// Something has happened at all.
    pub any: bool,
}

impl Shared {
    /// Makes engine and machine, and registers with the runtime. No I/O with a server happens (CONN-003).
    pub fn new<R: Runtime>(runtime: &R, options: &ConnectOptions) -> Result<Rc<Self>> {
        options.validate()?;
        let (engine, info) = AnyEngine::new(options.engine_options())?;
        let machine = ClientMachine::new(options, Some(engine.pool().clone()))?;
        let system =
            |error: io::Error| Error::config("engine", format!("its descriptor cannot be used: {error}"));
        let look_ups = LookUps::new(options.own_resolver(), engine.notifier().map_err(system)?);
        let watch = runtime.watch(engine.wake_fd().map_err(system)?).map_err(system)?;
        let breath = TimerFd::new().map_err(system)?;
        let breath_watch = runtime.watch(breath.duplicate().map_err(system)?).map_err(system)?;
        Ok(Rc::new(Self {
            core: RefCell::new(Core {
                machine,
                engine: Some(engine),
                breath: Some(breath),
                look_ups,
                completions: Vec::new(),
                names: Vec::new(),
                busy: 0,
            }),
            info,
            process: Process::current(),
            spin: options.engine_options().spin,
            wait: Wait::new(watch),
            breath: Wait::new(breath_watch),
            driver: RefCell::new(None),
            will_flush: Cell::new(true),
            driver_never_ran: Cell::new(true),
            driver_gone: Cell::new(false),
            joiners: RefCell::default(),
            wakers: Cell::default(),
        }))
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    /// True in a forked child, where nothing may be done with what is the parent's: everything ends, and only descriptors
    /// are closed (H7).
    #[inline(always)]
    pub fn is_forked(&self) -> bool {
        !self.process.is_current() && self.leave_to_parent()
    }

    #[cold]
    #[inline(never)]
    fn leave_to_parent(&self) -> bool {
        self.tear_down();
        true
    }

    /// The machine, for the duration of a closure that runs no user code. The driver will look at what it left to do.
    #[inline]
    pub fn with<T>(&self, act: impl FnOnce(&mut ClientMachine) -> T) -> T {
        let result = act(&mut self.core.borrow_mut().machine);
        self.nudge();
        result
    }

    /// As [`with`](Self::with), for what changes nothing that the driver must see.
    #[inline]
    pub fn look<T>(&self, act: impl FnOnce(&mut ClientMachine) -> T) -> T {
        act(&mut self.core.borrow_mut().machine)
    }

    /// It ends in a forked child, whether it was made there or before.
    pub fn listen(&self, capacity: usize) -> PushListener {
        let process = self.process;
        self.look(|machine| machine.listen(capacity)).ends_when(move || !process.is_current())
    }

    /// Wakes the driver unless it will come by itself.
    #[inline]
    fn nudge(&self) {
        if !self.will_flush.replace(true) {
            let driver = self.driver.borrow().clone();
            if let Some(driver) = driver {
                driver.wake();
            }
        }
    }

    // --- for the driver

    pub fn is_over(&self) -> bool {
        self.core.borrow().engine.is_none()
    }

    pub fn set_driver(&self, waker: &Waker) {
        self.driver_never_ran.set(false);
        let mut driver = self.driver.borrow_mut();
        if driver.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        let old = driver.replace(waker.clone());
        drop(driver);
        drop(old);
    }

    /// Collects what has happened and completes callers.
    pub fn turn(&self, now: Instant) -> io::Result<Turn> {
        let mut wakers = self.wakers.take();
        let result = self.core.borrow_mut().turn(now, &mut wakers);
        let woke = !wakers.is_empty();
        self.wake_all(wakers);
        // After the callers are woken: an owner whose drop panics must not keep them waiting.
        self.drop_returned();
        let (more, any) = result?;
        Ok(Turn { woke, more, any })
    }

    /// Gives the engine everything that is to be done. True when there was something.
    pub fn flush(&self, now: Instant) -> io::Result<bool> {
        let any = self.core.borrow_mut().flush(now)?;
        let names = std::mem::take(&mut self.core.borrow_mut().names);
        for (id, host, port) in names {
            let start = self.core.borrow().look_ups.prepare(id, &host, port);
            if let Some((resolver, answer)) = start {
                resolver.resolve(&host, port, answer);
            }
        }
        Ok(any)
    }

    /// Drops what callers had lent, with nothing borrowed.
    #[inline]
    fn drop_returned(&self) {
        let returns = self.core.borrow().machine.returns().clone();
        if !returns.is_empty() {
            drop(returns.take());
        }
    }

    /// How long to look for replies before the thread sleeps, when that is wanted and some are awaited.
    pub fn spin(&self) -> Option<Duration> {
        (!self.spin.is_zero() && self.core.borrow().machine.has_calls()).then_some(self.spin)
    }

    /// Whether the driver may wait for the descriptor; from then on it has to be woken.
    pub fn may_park(&self) -> io::Result<bool> {
        let mut core = self.core.borrow_mut();
        let core = &mut *core;
        let Some(engine) = &mut core.engine else { return Ok(false) };
        let may = engine.may_park()? && !core.look_ups.has_answer();
        self.will_flush.set(!may);
        Ok(may)
    }

    /// True when somebody asked for something since the driver parked.
    pub fn is_nudged(&self) -> bool {
        self.will_flush.get()
    }

    pub fn set_will_flush(&self) {
        self.will_flush.set(true);
    }

    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wait.poll(cx, || self.is_over())
    }

    /// Whether the breath's timer has fired, and the host has looked at its descriptors since.
    pub fn poll_breath(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.breath.poll(cx, || self.is_over());
        if let (Some(timer), Poll::Ready(_)) = (&self.core.borrow().breath, &result) {
            timer.drain()?;
        }
        result
    }

    pub fn set_breath(&self, after: Duration) -> io::Result<()> {
        self.core.borrow().breath.as_ref().map_or(Ok(()), |timer| timer.set(after))
    }

    // --- the end

    /// Ends everything now: sockets closed, every call over with [`Error::Closed`] and its delivery, descriptors and
    /// memory given back. The order is in `design`: stop, cancel, reap, classify, free. Idempotent.
    pub fn tear_down(&self) {
        let mut wakers = Vec::new();
        let is_ours = self.process.is_surely_current();
        let engine = self.core.borrow_mut().tear_down(is_ours, &mut wakers);
        let Some(engine) = engine else { return };
        drop(engine);
        let waits = (self.wait.take(), self.breath.take());
        let driver = self.driver.borrow_mut().take();
        self.will_flush.set(true);
        wakers.extend(driver);
        if !is_ours {
            // A forked child: its runtime's epoll set or ring is the parent's as well. What is dropped or woken there
            // would end the parent's wait, or disturb its tasks.
            std::mem::forget((waits, wakers));
            return;
        }
        drop(waits);
        self.wake_all(wakers);
        self.drop_returned();
    }

    /// The driver task is over or dropped.
    pub fn set_driver_gone(&self) {
        self.driver_gone.set(true);
        let joiners = std::mem::take(&mut *self.joiners.borrow_mut());
        let driver = self.driver.borrow_mut().take();
        if !self.process.is_current() {
            return std::mem::forget((joiners, driver));
        }
        drop(driver);
        self.wake_all(joiners);
    }

    /// Waits for the driver task to end, if it ever ran.
    pub async fn join(&self) {
        poll_fn(|cx| {
            let is_awaited = !self.driver_gone.get() && !self.driver_never_ran.get() && !self.is_forked();
            if !is_awaited || !self.is_over() {
                return Poll::Ready(());
            }
            let mut joiners = self.joiners.borrow_mut();
            if !joiners.iter().any(|known| known.will_wake(cx.waker())) {
                joiners.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Calls wakers with nothing borrowed. One that panics does not keep the others from being called.
    fn wake_all(&self, mut wakers: Vec<Waker>) {
        struct Rest<'a>(std::vec::Drain<'a, Waker>);
        impl Drop for Rest<'_> {
            /// One has panicked; should another, then two panics at once would end the process.
            fn drop(&mut self) {
                for waker in self.0.by_ref() {
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            }
        }
        let mut rest = Rest(wakers.drain(..));
        rest.0.by_ref().for_each(Waker::wake);
        drop(rest);
        self.wakers.set(wakers);
    }
}

impl Drop for Shared {
    /// The last handle is gone.
    fn drop(&mut self) {
        self.tear_down();
    }
}

impl Core {
    /// Whether the engine has more, and whether anything has happened.
    fn turn(&mut self, now: Instant, wakers: &mut Vec<Waker>) -> io::Result<(bool, bool)> {
        let Some(engine) = &mut self.engine else { return Ok((false, false)) };
        self.machine.pass_absent();
        let more = engine.poll(TURN_BUDGET, &mut self.completions)?;
        self.look_ups.collect(&mut self.completions);
        let mut any = !self.completions.is_empty();
        for completion in self.completions.drain(..) {
            self.machine.handle(now, completion);
        }
        self.busy = if more { self.busy + 1 } else { 0 };
        if (!more || self.busy > BUSY_MAX) && self.machine.next_deadline().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
            any = true;
        }
        self.machine.take_wakers(wakers);
        Ok((more, any))
    }

    fn flush(&mut self, now: Instant) -> io::Result<bool> {
        let Some(engine) = &mut self.engine else { return Ok(false) };
        self.machine.stamp(now);
        let mut any = false;
        while let Some(op) = self.machine.poll_op(now) {
            any = true;
            match op {
                Op::Resolve { id, host, port } => self.names.push((id, host, port)),
                op => engine.submit(op),
            }
        }
        engine.wake_at(now, self.machine.next_deadline());
        engine.flush()?;
        // A cancelled call may have let another one in, or a caller who was let in may be absent.
        Ok(any || self.machine.needs_turn())
    }

    fn tear_down(&mut self, is_ours: bool, wakers: &mut Vec<Waker>) -> Option<AnyEngine> {
        let mut engine = self.engine.take()?;
        self.breath = None;
        self.look_ups.close();
        #[expect(clippy::disallowed_methods, reason = "the end can come at any moment, outside every turn")]
        let now = Instant::now();
        if !is_ours {
            // Only descriptors go, with the engine's drop.
            self.machine.abandon();
            self.machine.take_wakers(wakers);
            return Some(engine);
        }
        self.machine.close();
        while let Some(op) = self.machine.poll_op(now) {
            // Look-ups are of no use any more; sockets that were asked for are opened and closed by the engine.
            if !matches!(op, Op::Resolve { .. }) {
                engine.submit(op);
            }
        }
        engine.close(&mut self.completions);
        for completion in self.completions.drain(..) {
            self.machine.handle(now, completion);
        }
        debug_assert!(self.machine.is_closed(), "the engine accounts for every connection");
        self.machine.abandon();
        self.machine.take_wakers(wakers);
        Some(engine)
    }
}
