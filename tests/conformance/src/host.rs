//! What a suite has to know of a host runtime.

use respiral::Runtime;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A host runtime that the suites run under. An adapter's tests implement it in a few lines.
pub trait Host: 'static {
    /// The adapter under test.
    type Runtime: Runtime + Clone;
    /// A host's event loop, on the thread that started it.
    type Loop;
    /// A task of the host.
    type Task;

    /// Dropping the loop drops the tasks in it. monoio leaks those that wait (H4).
    const DROPS_TASKS: bool;
    /// The host offers timers when it is started with them.
    const HAS_TIMERS: bool;
    /// The host itself needs io_uring.
    const NEEDS_URING: bool;

    /// The adapter under test.
    fn runtime() -> Self::Runtime;

    /// A loop with nothing that the client does not need: no timers, where the host can do without (H17).
    fn start() -> Self::Loop;

    /// A loop with timers.
    fn start_with_timers() -> Self::Loop;

    /// Runs a future to its end, and the tasks beside it.
    fn block_on<F: Future>(host: &mut Self::Loop, future: F) -> F::Output;

    /// Starts a task on this thread.
    fn spawn(task: impl Future<Output = ()> + 'static) -> Self::Task;

    /// Ends a task before its time; false when the host has no means to.
    fn abort(task: &Self::Task) -> bool;

    /// The host's own timer, on a loop that was started with timers.
    fn sleep(time: Duration) -> impl Future<Output = ()>;
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    over: bool,
}

/// A task's result, on its way.
pub struct Join<T>(Rc<RefCell<Slot<T>>>);

impl<T> Join<T> {
    /// Waits for the task's end.
    ///
    /// # Panics
    /// When the task was dropped or panicked.
    pub async fn result(self) -> T {
        self.outcome().await.expect("the task ended without a result")
    }

    /// Waits for the task's end; `None` when it was dropped or panicked.
    pub async fn outcome(self) -> Option<T> {
        poll_fn(|cx| {
            let mut slot = self.0.borrow_mut();
            if slot.over {
                return Poll::Ready(slot.value.take());
            }
            slot.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// True when the task has ended.
    pub fn is_over(&self) -> bool {
        self.0.borrow().over
    }
}

struct Promise<T>(Rc<RefCell<Slot<T>>>);

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
        slot.over = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Starts a task on the host and gives its result.
pub fn spawn<H: Host, T: 'static>(task: impl Future<Output = T> + 'static) -> Join<T> {
    spawn_with::<H, T>(task).0
}

/// As [`spawn`], with the host's own handle.
pub fn spawn_with<H: Host, T: 'static>(task: impl Future<Output = T> + 'static) -> (Join<T>, H::Task) {
    let slot = Rc::new(RefCell::new(Slot { value: None, waker: None, over: false }));
    let promise = Promise(slot.clone());
    let task = H::spawn(async move {
        let value = task.await;
        promise.0.borrow_mut().value = Some(value);
    });
    (Join(slot), task)
}
