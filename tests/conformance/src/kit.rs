//! What every test needs: a server, a loop, a guard against hangs, and the check that nothing is left behind.

use crate::host::Host;
use respiral::engine::leaked_engines;
use respiral::{Client, ConnectOptions, EngineKind, EngineOptions, Runtime, Watch};
use respiral_testkit::Server;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A test that takes longer (seconds) hangs: far beyond what a healthy one needs on a busy machine. `LIMIT` sets another,
/// for runs with larger counts.
const LIMIT: u64 = 90;
/// How long a condition may take to come true.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

static LEAK_EXPECTED: AtomicBool = AtomicBool::new(false);

/// The test that runs leaves descriptors behind which are not the client's; it counts them itself.
pub fn expect_leak() {
    LEAK_EXPECTED.store(true, Ordering::SeqCst);
}

/// Runs one test alone, under a watchdog; checks afterwards that no descriptor and no engine is left.
pub fn run(name: &str, test: impl FnOnce()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    LEAK_EXPECTED.store(false, Ordering::SeqCst);
    let before = descriptors_at_rest();
    let leaked = leaked_engines();
    let (done, waiting) = channel::<()>();
    let limit = Duration::from_secs(count_from_env("LIMIT", LIMIT));
    let text = format!("{name} hangs: no end after {limit:?}");
    let watchdog = std::thread::spawn(move || {
        if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{text}");
            std::process::abort();
        }
    });
    let start = Instant::now();
    test();
    println!("{name}: {:.1?}", start.elapsed());
    drop(done);
    watchdog.join().expect("the watchdog ends");
    assert_eq!(leaked_engines(), leaked, "an engine was leaked");
    if !LEAK_EXPECTED.load(Ordering::SeqCst) {
        // Helper threads (look-ups) may be a moment late.
        let start = Instant::now();
        while descriptors() > before && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(
            descriptors() <= before,
            "{before} before; descriptors are left open: {:?}",
            list_descriptors()
        );
    }
}

/// What the open descriptors of this process are, for messages.
pub fn list_descriptors() -> Vec<String> {
    let names = std::fs::read_dir("/proc/self/fd").expect("procfs");
    let mut names: Vec<_> = names
        .flatten()
        .filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string()))
        .collect();
    names.sort();
    names
}

/// Open descriptors of this process: the least of a few looks, since the test runner's own threads open something for a
/// moment.
pub fn descriptors_at_rest() -> usize {
    let look = |_| {
        std::thread::sleep(Duration::from_millis(1));
        descriptors()
    };
    (0..3).map(look).min().unwrap_or_default()
}

/// Open descriptors of this process, now.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// A server of the test kit, and how to reach it with one engine under one host.
pub struct Kit<H> {
    /// The server.
    pub server: Server,
    /// Which engine the clients get.
    pub engine: EngineKind,
    host: PhantomData<H>,
}

impl<H: Host> Kit<H> {
    /// A server with all defaults, which records what it gets.
    pub fn new(engine: EngineKind) -> Self {
        Self::with(engine, Server::builder().record().start().expect("a free port"))
    }

    /// A server of one's own.
    pub fn with(engine: EngineKind, server: Server) -> Self {
        Self { server, engine, host: PhantomData }
    }

    /// Options that lead to the server.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::tcp("127.0.0.1", self.server.addr().port()).engine(self.engine_options())
    }

    /// Options of the engine.
    pub fn engine_options(&self) -> EngineOptions {
        EngineOptions::new().kind(self.engine)
    }

    /// A client with all defaults.
    pub async fn connect(&self) -> Client {
        self.connect_with(self.options()).await
    }

    /// A client with these options.
    pub async fn connect_with(&self, options: ConnectOptions) -> Client {
        Client::connect_on(H::runtime(), options).await.expect("the server is there")
    }

    /// A lazy client with these options.
    pub fn lazy(&self, options: ConnectOptions) -> Client {
        Client::lazy_on(H::runtime(), options).expect("valid options")
    }

    /// Waits until the server's numbers satisfy a condition.
    pub async fn until(&self, what: &str, mut reached: impl FnMut(&respiral_testkit::Stats) -> bool) {
        until::<H>(what, || reached(&self.server.stats())).await;
    }

    /// How often the server got this command, by its text.
    pub fn count(&self, text: &str) -> usize {
        self.server.commands().iter().filter(|command| command.text() == text).count()
    }
}

/// Runs a test on a bare loop, with a server of its own.
pub fn inside<H: Host>(engine: EngineKind, test: impl AsyncFnOnce(Kit<H>)) {
    inside_with(Kit::new(engine), test);
}

/// Runs a test on a bare loop, with this server.
pub fn inside_with<H: Host>(kit: Kit<H>, test: impl AsyncFnOnce(Kit<H>)) {
    let mut host = H::start();
    H::block_on(&mut host, test(kit));
}

/// Lets time pass, and other tasks run, without the host's timers: the adapter waits for a timer descriptor.
pub async fn pause<H: Host>(time: Duration) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        let value = Timespec::try_from(left).expect("a short time");
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval: zero, it_value: value };
        rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec).expect("a timer");
        H::runtime().watch(timer).expect("watched").ready().await.expect("ready");
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// When it does not in time.
pub async fn until<H: Host>(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WAIT_LIMIT, "this did not come true: {what}");
        pause::<H>(Duration::from_millis(1)).await;
    }
}

/// Polls once, outside every task: nobody will be woken.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A small generator of numbers; one seed, one sequence.
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Runs `begin` on one processor, with the threads that it starts, and lets this thread stay on another from then on.
pub fn apart<T>(begin: impl FnOnce() -> T) -> T {
    let may = sched_getaffinity(None).expect("a set of processors");
    let stay_on = |place| {
        let mut one = CpuSet::new();
        if let Some(processor) = (0..CpuSet::MAX_CPU).filter(|processor| may.is_set(*processor)).nth(place) {
            one.set(processor);
            sched_setaffinity(None, &one).expect("a processor that it may use");
        }
    };
    stay_on(1);
    let begun = begin();
    stay_on(0);
    begun
}

/// A count from the environment, or its default.
pub fn count_from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
        Err(_) => default,
    }
}
