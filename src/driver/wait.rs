//! Waits for a descriptor, again and again.

use super::runtime::Watch;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

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
