//! The driver: the one task that moves a client.
//!
//! ```text
//!          ┌────────────── completions, timers, callers woken ◀──────────────┐
//!          ▼                                                                 │
//!  Turn ──▶ (yield, breathe, if it must) ────▶ Flush ──▶ something done? ──▶ Turn
//!                                                └──▶ nothing ──▶ (Spin) ──▶ Park ──▶ descriptor ready
//!                                                        ▲          └───▶ nudged by a call ──▶ Flush
//! ```
//! Callers that a turn woke run before the flush, so what they ask next leaves in one send per connection. When the
//! driver yields and the thread has not slept for some milliseconds, it waits for that first (*breathes*, see [`Breath`]). It
//! yields through a second task, the *bell*, because a task that wakes itself goes to the *front* of monoio's queue
//! (H8): the driver wakes the bell, the bell wakes the driver, and both go to the back.

use super::breath::{Breath, is_breath_due};
use super::shared::{Shared, Turn};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Moves a client: it must be polled on the client's thread, as a task of its own. It ends when the client is closed or
/// its last handle is gone. Dropping it earlier closes the client.
#[must_use = "a client does nothing without its driver"]
pub struct Driver {
    shared: Weak<Shared>,
    bell: Rc<Bell>,
    phase: Phase,
    /// Something was given to the engine since callers were last woken. Otherwise the thread does not spin: a caller that was
    /// woken and that the host has not run yet (its main future, which waits for the queue to be empty) would wait for the
    /// spin's end. (Others may still await a reply; it is then found by a park.)
    sent: bool,
}

enum Phase {
    Turn,
    Flush,
    /// Looking for replies until then, before the thread sleeps.
    Spin {
        until: Instant,
    },
    Park,
    /// Waiting for the host to park: callers that were woken have run.
    Breathe(Breath),
}

impl Driver {
    pub(super) fn new(shared: &Rc<Shared>) -> (Self, impl Future<Output = ()> + use<>) {
        let bell = Rc::new(Bell::default());
        let task = BellTask(Rc::downgrade(&bell));
        let (shared, phase) = (Rc::downgrade(shared), Phase::Flush);
        (Self { shared, bell, phase, sent: false }, task)
    }

    /// Moves on until it has to wait. `Ready` at the end.
    fn run(&mut self, shared: &Shared, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        loop {
            if shared.is_over() {
                return Ok(Poll::Ready(()));
            }
            // Read once per step: everything that one step does happens at one time.
            #[expect(clippy::disallowed_methods, reason = "the driver is where the clock is read")]
            let now = Instant::now();
            match &mut self.phase {
                Phase::Turn => {
                    let turn = shared.turn(now)?;
                    self.phase = Phase::Flush;
                    self.sent &= !turn.woke;
                    if must_yield(&turn, now) {
                        return Ok(self.yield_now(now, cx));
                    }
                }
                Phase::Flush => {
                    let any = shared.flush(now)?;
                    self.sent |= any;
                    self.phase = match shared.spin() {
                        _ if any => Phase::Turn,
                        Some(spin) if self.sent => Phase::Spin { until: now + spin },
                        _ => park(shared)?,
                    };
                }
                Phase::Spin { until } => {
                    let turn = shared.turn(now)?;
                    self.sent &= !turn.woke;
                    if must_yield(&turn, now) {
                        self.phase = Phase::Flush;
                        return Ok(self.yield_now(now, cx));
                    }
                    // What has happened may want something done.
                    if turn.any {
                        self.phase = Phase::Flush;
                    } else if now >= *until {
                        self.phase = park(shared)?;
                    }
                }
                Phase::Park => {
                    if shared.is_nudged() {
                        self.phase = Phase::Flush;
                        continue;
                    }
                    let Poll::Ready(result) = shared.poll_ready(cx) else { return Ok(Poll::Pending) };
                    result?;
                    shared.set_will_flush();
                    self.phase = Phase::Turn;
                }
                Phase::Breathe(breath) => match shared.poll_breath(cx) {
                    Poll::Ready(result) => {
                        result?;
                        if breath.is_over(now) {
                            self.phase = Phase::Flush;
                        }
                    }
                    Poll::Pending => {
                        if let Some(after) = breath.begin_wait(now) {
                            shared.set_breath(after)?;
                        }
                        return Ok(Poll::Pending);
                    }
                },
            }
        }
    }

    fn yield_now(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if is_breath_due(now) {
            self.phase = Phase::Breathe(Breath::new());
        }
        self.bell.ring(cx.waker());
        Poll::Pending
    }
}

/// Callers run, more has come than one turn takes, or much has come of a reply that nobody can have yet.
fn must_yield(turn: &Turn, now: Instant) -> bool {
    turn.woke || turn.more || turn.any && is_breath_due(now)
}

/// Parks, unless there is something to do.
fn park(shared: &Shared) -> io::Result<Phase> {
    Ok(if shared.may_park()? { Phase::Park } else { Phase::Turn })
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(shared) = self.shared.upgrade() else { return Poll::Ready(()) };
        if shared.is_forked() {
            shared.set_driver_gone();
            return Poll::Ready(());
        }
        if self.bell.is_ringing() {
            // Somebody else woke the driver while it yields; the bell will come. To this task: it may be another one
            // than before, where the driver is placed by hand.
            self.bell.expect(cx.waker());
            return Poll::Pending;
        }
        shared.set_driver(cx.waker());
        let guard = OnPanic(&shared);
        let result = self.run(&shared, cx);
        std::mem::forget(guard);
        match result {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => {}
            Err(error) => {
                tracing::error!(%error, "the I/O engine failed; the client is closed");
                shared.tear_down();
            }
        }
        // Not only when it is dropped: who placed the driver may keep it, and wait in `close`.
        shared.set_driver_gone();
        Poll::Ready(())
    }
}

/// A panic under the driver ends the client. monoio keeps a task that panicked, so `Drop` alone would not do (H5).
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        self.0.tear_down();
        self.0.set_driver_gone();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let shared = self.shared.upgrade();
        // The wakers are of the parent's tasks, in a forked child (H7).
        self.bell.end(shared.as_ref().is_some_and(|shared| shared.is_forked()));
        if let Some(shared) = shared {
            shared.tear_down();
            shared.set_driver_gone();
        }
    }
}

/// Where the driver and the task that wakes it again meet.
#[derive(Default)]
struct Bell {
    /// The driver waits to be woken.
    driver: RefCell<Option<Waker>>,
    task: RefCell<Option<Waker>>,
    over: Cell<bool>,
}

impl Bell {
    fn ring(&self, driver: &Waker) {
        *self.driver.borrow_mut() = Some(driver.clone());
        let task = self.task.borrow_mut().take();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Wakes this one instead of who rang.
    fn expect(&self, driver: &Waker) {
        let mut place = self.driver.borrow_mut();
        if place.as_ref().is_none_or(|old| !old.will_wake(driver)) {
            let old = place.replace(driver.clone());
            drop(place);
            drop(old);
        }
    }

    fn is_ringing(&self) -> bool {
        self.driver.borrow().is_some()
    }

    fn end(&self, is_forked: bool) {
        self.over.set(true);
        let (driver, task) = (self.driver.borrow_mut().take(), self.task.borrow_mut().take());
        if is_forked {
            return std::mem::forget((driver, task));
        }
        drop(driver);
        if let Some(task) = task {
            task.wake();
        }
    }
}

struct BellTask(Weak<Bell>);

impl Future for BellTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(bell) = self.0.upgrade() else { return Poll::Ready(()) };
        if bell.over.get() {
            return Poll::Ready(());
        }
        let driver = bell.driver.borrow_mut().take();
        let old = bell.task.borrow_mut().replace(cx.waker().clone());
        drop(old);
        if let Some(driver) = driver {
            driver.wake();
        }
        Poll::Pending
    }
}
