//! monoio with each of its drivers, as the suites see it.

use conformance::Host;
use monoio::time::TimeDriver;
use monoio::{FusionDriver, FusionRuntime, IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder};
use std::future::Future;
use std::time::Duration;

/// A loop with or without timers, which are different types.
pub enum Loop<Bare, Timed> {
    Bare(Bare),
    Timed(Timed),
}

macro_rules! host {
    ($(#[$doc:meta])* $name:ident, $driver:ty, $bare:ty, $timed:ty, $needs_uring:expr) => {
        $(#[$doc])*
        #[allow(dead_code)]
        pub struct $name;

        impl Host for $name {
            type Runtime = respiral_monoio::Monoio;
            type Loop = Loop<$bare, $timed>;
            type Task = ();

            const DROPS_TASKS: bool = false;
            const HAS_TIMERS: bool = true;
            const NEEDS_URING: bool = $needs_uring;

            fn runtime() -> respiral_monoio::Monoio {
                respiral_monoio::Monoio
            }

            fn start() -> Self::Loop {
                Loop::Bare(RuntimeBuilder::<$driver>::new().build().unwrap())
            }

            fn start_with_timers() -> Self::Loop {
                Loop::Timed(RuntimeBuilder::<$driver>::new().enable_timer().build().unwrap())
            }

            fn block_on<F: Future>(host: &mut Self::Loop, future: F) -> F::Output {
                match host {
                    Loop::Bare(runtime) => runtime.block_on(future),
                    Loop::Timed(runtime) => runtime.block_on(future),
                }
            }

            fn spawn(task: impl Future<Output = ()> + 'static) {
                drop(monoio::spawn(task));
            }

            fn abort((): &()) -> bool {
                false
            }

            async fn sleep(time: Duration) {
                monoio::time::sleep(time).await;
            }
        }
    };
}

host!(
    /// monoio on io_uring.
    Uring, IoUringDriver, Runtime<IoUringDriver>, Runtime<TimeDriver<IoUringDriver>>, true
);
host!(
    /// monoio on epoll.
    Legacy, LegacyDriver, Runtime<LegacyDriver>, Runtime<TimeDriver<LegacyDriver>>, false
);
host!(
    /// monoio on what works.
    Fusion, FusionDriver, FusionRuntime<IoUringDriver, LegacyDriver>,
    FusionRuntime<TimeDriver<IoUringDriver>, TimeDriver<LegacyDriver>>, false
);
