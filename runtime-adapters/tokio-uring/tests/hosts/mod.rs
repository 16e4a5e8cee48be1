//! tokio-uring, as the suites see it.

use conformance::Host;
use std::future::Future;
use std::time::Duration;

/// Its runtime; it always has timers.
pub struct TokioUring;

impl Host for TokioUring {
    type Runtime = respiral_tokio_uring::Tokio;
    type Loop = tokio_uring::Runtime;
    type Task = tokio::task::JoinHandle<()>;

    const DROPS_TASKS: bool = true;
    const HAS_TIMERS: bool = true;
    const NEEDS_URING: bool = true;

    fn runtime() -> respiral_tokio_uring::Tokio {
        respiral_tokio_uring::Tokio
    }

    fn start() -> tokio_uring::Runtime {
        tokio_uring::Runtime::new(&tokio_uring::builder()).unwrap()
    }

    fn start_with_timers() -> tokio_uring::Runtime {
        Self::start()
    }

    fn block_on<F: Future>(host: &mut tokio_uring::Runtime, future: F) -> F::Output {
        host.block_on(future)
    }

    fn spawn(task: impl Future<Output = ()> + 'static) -> Self::Task {
        tokio_uring::spawn(task)
    }

    fn abort(task: &Self::Task) -> bool {
        task.abort();
        true
    }

    async fn sleep(time: Duration) {
        tokio::time::sleep(time).await;
    }
}
