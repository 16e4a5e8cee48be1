//! Waits for a descriptor, and what a thread knows of its host's parks (H9).

use super::runtime::Watch;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A host that does not park for so long fires no timers (H9).
const AWAKE_MAX: Duration = Duration::from_millis(1);

/// One descriptor, waited for again and again.
pub(super) struct Wait {
    /// Completed once per readiness, for ever. `None` while it runs, and after the end.
    future: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
    ready: Rc<Cell<Option<io::Result<()>>>>,
}

impl Wait {
    pub fn new(watch: impl Watch) -> Self {
        let ready = Rc::new(Cell::new(None));
        Self { future: RefCell::new(Some(Box::pin(watch_forever(watch, ready.clone())))), ready }
    }

    /// `Ready` after the end, too. `is_over` is asked when the runtime's code has run.
    pub fn poll(&self, cx: &mut Context<'_>, is_over: impl Fn() -> bool) -> Poll<io::Result<()>> {
        // Taken out while it runs: a runtime's future may do anything, even drop the last handle.
        let Some(mut future) = self.future.borrow_mut().take() else { return Poll::Ready(Ok(())) };
        let _ = future.as_mut().poll(cx);
        if !is_over() {
            *self.future.borrow_mut() = Some(future);
        }
        match self.ready.take() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    /// Ends it. What is returned gives the registration back when it is dropped.
    pub fn take(&self) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        self.future.borrow_mut().take()
    }
}

/// Registers once and waits again and again, in one allocation (registering per wait cost twice the time and two).
async fn watch_forever<W: Watch>(watch: W, ready: Rc<Cell<Option<io::Result<()>>>>) {
    loop {
        ready.set(Some(watch.ready().await));
        let mut told = false;
        poll_fn(|_| if std::mem::replace(&mut told, true) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

thread_local! {
    /// How often a driver of this thread did something.
    static STEPS: Cell<u64> = const { Cell::new(0) };
    /// When the host last parked for one of this thread's drivers.
    static PARKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What one driver knows of its host's parks.
///
/// A descriptor that became ready does not show that the host parked: monoio looks at its descriptors between its tasks
/// as well, and fires no timers then. It did park when no driver of the thread did anything from the wait's beginning to
/// its end. (Other tasks of the host may have run: those that leave it no time to park are not held up by this client.)
#[derive(Default)]
pub(super) struct Parks {
    /// The wait began at this step.
    pending: Option<u64>,
}

impl Parks {
    /// A driver of this thread does something.
    pub fn note_step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// The host has not parked for too long.
    pub fn are_due(now: Instant) -> bool {
        PARKED.get().is_none_or(|at| now.duration_since(at) > AWAKE_MAX)
    }

    /// A wait goes on, or is over.
    pub fn note_wait(&mut self, now: Instant, is_ready: bool) {
        let steps = STEPS.get();
        if !is_ready {
            self.pending = Some(steps);
        } else if self.pending.take() == Some(steps) {
            PARKED.set(Some(now));
        }
    }

    /// The driver goes on for another reason.
    pub fn forget_wait(&mut self) {
        self.pending = None;
    }
}
