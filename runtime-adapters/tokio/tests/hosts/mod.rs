//! tokio, as the suites see it.

use conformance::Host;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

/// A current-thread runtime with a `LocalSet`.
pub struct Tokio;

impl Host for Tokio {
    type Runtime = respiral_tokio::Tokio;
    type Loop = (LocalSet, Runtime);
    type Task = JoinHandle<()>;

    const DROPS_TASKS: bool = true;
    const HAS_TIMERS: bool = true;
    const NEEDS_URING: bool = false;

    fn runtime() -> respiral_tokio::Tokio {
        respiral_tokio::Tokio
    }

    fn start() -> Self::Loop {
        (LocalSet::new(), Builder::new_current_thread().enable_io().build().unwrap())
    }

    fn start_with_timers() -> Self::Loop {
        (LocalSet::new(), Builder::new_current_thread().enable_all().build().unwrap())
    }

    fn block_on<F: Future>((set, runtime): &mut Self::Loop, future: F) -> F::Output {
        set.block_on(runtime, future)
    }

    fn spawn(task: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
        tokio::task::spawn_local(task)
    }

    fn abort(task: &JoinHandle<()>) -> bool {
        task.abort();
        true
    }

    async fn sleep(time: Duration) {
        tokio::time::sleep(time).await;
    }
}
