//! Callers on one client: in a closed loop, or at a fixed rate.
//!
//! **Closed loop.** W callers, each issues its next operation when it has the reply of the last. Latency is that of a
//! sample of operations (a prime stride, so that no place in a wave is preferred): two clock readings per operation would
//! cost more than some clients do.
//!
//! **Open loop.** Operation *i* is due at *start + i / rate*, whether earlier ones are done or not; at most W are under
//! way. Latency counts from the moment an operation was *due*, so a pause of the client shows in all operations that it
//! held up, not in one (coordinated omission). A timer of the kernel releases what is due, at most every
//! [`TICK_MIN`]; it is the same for every side.

use crate::alloc;
use crate::clients::{Client, Length};
use crate::meter::{Meter, Place, Sample, histogram, reset_peak_rss, status_kib};
use crate::workload::{HASH_FIELDS, MGET_KEYS, Step, Work, Workload};
use futures_util::future::join_all;
use hdrhistogram::Histogram;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use respiral_monoio::{Runtime, Watch};
use respiral_testkit::alloc_count;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// What a run does.
pub struct Job {
    pub url: String,
    pub work: Rc<Work>,
    /// Callers in a closed loop; operations under way at most in an open one.
    pub callers: usize,
    pub connections: u32,
    /// Operations per second; closed loop without.
    pub rate: Option<f64>,
    pub stop: Stop,
    /// The same load for this long before the measurement.
    pub warm_up: Duration,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    After(Duration),
    Operations(u64),
}

/// Connects, warms up, measures.
pub async fn drive<R: Runtime, C: Client>(
    runtime: &R,
    connect: impl Future<Output = C>,
    job: &Job,
) -> Sample {
    let before = Memory::begin();
    let client = connect.await;
    let idle = (job.work.workload == Workload::Idle).then(|| before.per_connection(job.connections));
    if !job.warm_up.is_zero() {
        drive_once(runtime, &client, job, Stop::After(job.warm_up)).await;
    }
    let sample = before.finish(drive_once(runtime, &client, job, job.stop).await, idle);
    client.close().await;
    sample
}

async fn drive_once<R: Runtime, C: Client>(runtime: &R, client: &C, job: &Job, stop: Stop) -> Sample {
    match job.rate {
        None => closed(runtime, client, job, stop).await,
        Some(rate) => open(runtime, client, job, stop, rate).await,
    }
}

/// Memory of the process before it connects.
pub struct Memory {
    heap: i64,
    rss_kib: f64,
}

/// Memory of each idle connection.
pub struct PerConnection {
    heap_bytes: f64,
    rss_bytes: f64,
}

impl Memory {
    fn now() -> Self {
        Self { heap: alloc_count::total().bytes_live(), rss_kib: status_kib("VmRSS:") }
    }

    /// From here on peaks are those of the client.
    pub fn begin() -> Self {
        reset_peak_rss();
        alloc_count::reset_peak();
        Self::now()
    }

    /// What has come since, divided. What comes later is timed, and not counted any more.
    pub fn per_connection(&self, connections: u32) -> PerConnection {
        let (now, n) = (Self::now(), f64::from(connections));
        alloc::stop();
        PerConnection {
            heap_bytes: (now.heap - self.heap) as f64 / n,
            rss_bytes: (now.rss_kib - self.rss_kib) * 1024.0 / n,
        }
    }

    /// A run with its peaks.
    pub fn finish(&self, sample: Sample, idle: Option<PerConnection>) -> Sample {
        let heap = if alloc::is_counting() { alloc_count::peak() - self.heap } else { 0 };
        let idle = idle.unwrap_or(PerConnection { heap_bytes: 0.0, rss_bytes: 0.0 });
        Sample {
            peak_grown_bytes: ((sample.peak_rss_kib - self.rss_kib) * 1024.0).max(0.0),
            peak_heap_bytes: heap as f64,
            heap_bytes_per_connection: idle.heap_bytes,
            rss_bytes_per_connection: idle.rss_bytes,
            ..sample
        }
    }
}

/// One operation, checked: what a workload did not put there ends the run. (A macro, so that the loop of a workload is
/// compiled for it alone, as a service's is.)
macro_rules! operation {
    (Get, $client:ident, $work:ident, $index:ident) => {{
        let value = $client.get($work.key($index)).await.expect("a reply");
        assert_eq!(value.length(), $work.value.len());
    }};
    (GetOwned, $client:ident, $work:ident, $index:ident) => {{
        let value = $client.get_owned($work.key($index)).await.expect("a reply");
        assert_eq!(value.len(), $work.value.len());
    }};
    (Set, $client:ident, $work:ident, $index:ident) => {
        $client.set($work.key($index), &$work.value).await.expect("a reply")
    };
    (Incr, $client:ident, $work:ident, $index:ident) => {
        assert!($client.incr($work.key($index)).await.expect("a reply") > 0)
    };
    (Mget, $client:ident, $work:ident, $index:ident) => {{
        let values = $client.mget(&$work.keys($index)).await.expect("a reply");
        assert_eq!(values.iter().map(Length::length).sum::<usize>(), MGET_KEYS * $work.value.len());
    }};
    (Hgetall, $client:ident, $work:ident, $index:ident) => {{
        let fields = $client.hgetall($work.key($index)).await.expect("a reply");
        assert_eq!(fields.len(), HASH_FIELDS);
    }};
}

/// Whatever the workload has at this place.
async fn perform<C: Client>(client: &C, work: &Work, index: u64) {
    match work.step(index) {
        Step::Get => operation!(Get, client, work, index),
        Step::GetOwned => operation!(GetOwned, client, work, index),
        Step::Set => operation!(Set, client, work, index),
        Step::Incr => operation!(Incr, client, work, index),
        Step::Mget => operation!(Mget, client, work, index),
        Step::Hgetall => operation!(Hgetall, client, work, index),
    }
}

/// What a caller issues at once. Joined in groups, since `join_all` allocates per future beyond 30.
async fn perform_batch<C: Client>(client: &C, work: &Work, index: u64) {
    const GROUP: u64 = 25;
    let group = |first| join_all((0..GROUP).map(move |i| perform(client, work, index + first * GROUP + i)));
    join_all((0..work.workload.batch() / GROUP).map(group)).await;
}

/// The state of a closed loop.
struct Closed {
    next: Cell<u64>,
    end: Cell<u64>,
    timed_next: Cell<u64>,
    stride: u64,
    latencies: RefCell<Histogram<u64>>,
    running: Cell<usize>,
    over: Gate,
}

/// Every how-manieth operation is timed; a lone caller's cost hides the clock's.
pub fn stride(callers: usize) -> u64 {
    match callers {
        0..=8 => 1,
        9..=64 => 17,
        _ => 61,
    }
}

async fn closed<R: Runtime, C: Client>(runtime: &R, client: &C, job: &Job, stop: Stop) -> Sample {
    let (end, budget) = match stop {
        Stop::After(time) => (u64::MAX, time),
        Stop::Operations(count) => (count, Duration::MAX),
    };
    let state = Rc::new(Closed {
        next: Cell::new(0),
        end: Cell::new(end),
        timed_next: Cell::new(0),
        stride: stride(job.callers) * job.work.workload.batch(),
        latencies: RefCell::new(histogram()),
        running: Cell::new(job.callers),
        over: Gate::default(),
    });
    macro_rules! callers {
        ($perform:expr) => {
            spawn_callers(runtime, client, job, &state, budget, $perform)
        };
        (of $step:ident) => {
            callers!(async |client: &C, work: &Work, index: u64| operation!($step, client, work, index))
        };
    }
    match job.work.workload {
        Workload::Pipeline => callers!(perform_batch::<C>),
        Workload::Mixed => callers!(perform::<C>),
        _ => match job.work.step(0) {
            Step::Get => callers!(of Get),
            Step::GetOwned => callers!(of GetOwned),
            Step::Set => callers!(of Set),
            Step::Incr => callers!(of Incr),
            Step::Mget => callers!(of Mget),
            Step::Hgetall => callers!(of Hgetall),
        },
    }
    // The tasks exist; none has run.
    let meter = Meter::start(job.place);
    state.over.wait().await;
    meter.stop(state.next.get(), &state.latencies.borrow())
}

fn spawn_callers<R: Runtime, C: Client>(
    runtime: &R,
    client: &C,
    job: &Job,
    state: &Rc<Closed>,
    budget: Duration,
    perform: impl AsyncFn(&C, &Work, u64) + Copy + 'static,
) {
    let started = Instant::now();
    let batch = job.work.workload.batch();
    for _ in 0..job.callers {
        let (client, work, state) = (client.clone(), job.work.clone(), state.clone());
        runtime.spawn_local(async move {
            while state.next.get() < state.end.get() {
                let index = state.next.get();
                state.next.set(index + batch);
                let is_timed = index >= state.timed_next.get();
                let since = if is_timed {
                    state.timed_next.set(index + state.stride);
                    Instant::now()
                } else {
                    started
                };
                perform(&client, &work, index).await;
                if !is_timed {
                    continue;
                }
                let now = Instant::now();
                state.latencies.borrow_mut().saturating_record((now - since).as_nanos() as u64);
                if now - started > budget {
                    state.end.set(0);
                }
            }
            state.running.set(state.running.get() - 1);
            if state.running.get() == 0 {
                state.over.open();
            }
        });
    }
}

/// When operations are due.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    interval_ns: f64,
    pub count: u64,
}

/// The kernel's timer fires at most this often.
const TICK_MIN: Duration = Duration::from_micros(50);

impl Schedule {
    pub fn new(rate: f64, stop: Stop) -> Self {
        let count = match stop {
            Stop::After(time) => (rate * time.as_secs_f64()).ceil() as u64,
            Stop::Operations(count) => count,
        };
        Self { interval_ns: 1e9 / rate, count }
    }

    /// Operations that are due by now.
    pub fn due(&self, elapsed: Duration) -> u64 {
        ((elapsed.as_nanos() as f64 / self.interval_ns) as u64 + 1).min(self.count)
    }

    /// From the moment operation `index` was due.
    pub fn latency_ns(&self, index: u64, elapsed: Duration) -> u64 {
        (elapsed.as_nanos() as u64).saturating_sub((index as f64 * self.interval_ns) as u64)
    }

    pub fn timer(&self) -> OwnedFd {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC);
        let timer = timer.expect("a timer");
        let tick = Duration::from_nanos(self.interval_ns as u64).max(TICK_MIN);
        timer.set(Expiration::Interval(tick.into()), TimerSetTimeFlags::empty()).expect("a valid time");
        timer.into()
    }
}

/// The state of an open loop.
struct Open {
    schedule: Schedule,
    next: Cell<u64>,
    released: Cell<u64>,
    idle: RefCell<VecDeque<Waker>>,
    latencies: RefCell<Histogram<u64>>,
    running: Cell<usize>,
    over: Gate,
}

impl Open {
    /// The next operation that is due; none when all have been handed out.
    async fn take(&self, batch: u64) -> Option<u64> {
        poll_fn(|cx| {
            let index = self.next.get();
            if index >= self.schedule.count {
                return Poll::Ready(None);
            }
            if index < self.released.get() {
                self.next.set(index + batch);
                return Poll::Ready(Some(index));
            }
            self.idle.borrow_mut().push_back(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn release(&self, due: u64) {
        let fresh = due - self.released.replace(due);
        for _ in 0..fresh {
            let Some(waker) = self.idle.borrow_mut().pop_front() else { break };
            waker.wake();
        }
        if due == self.schedule.count {
            std::mem::take(&mut *self.idle.borrow_mut()).into_iter().for_each(Waker::wake);
        }
    }
}

async fn open<R: Runtime, C: Client>(runtime: &R, client: &C, job: &Job, stop: Stop, rate: f64) -> Sample {
    let schedule = Schedule::new(rate, stop);
    let state = Rc::new(Open {
        schedule,
        next: Cell::new(0),
        released: Cell::new(0),
        idle: RefCell::default(),
        latencies: RefCell::new(histogram()),
        running: Cell::new(job.callers),
        over: Gate::default(),
    });
    let timer = schedule.timer();
    let ticks = timer.try_clone().expect("a descriptor");
    let watch = runtime.watch(timer).expect("the runtime takes a descriptor");
    let started = Instant::now();
    for _ in 0..job.callers {
        let (client, work, state) = (client.clone(), job.work.clone(), state.clone());
        runtime.spawn_local(async move {
            let batch = work.workload.batch();
            while let Some(index) = state.take(batch).await {
                if batch == 1 {
                    perform(&client, &work, index).await;
                } else {
                    perform_batch(&client, &work, index).await;
                }
                let latency = state.schedule.latency_ns(index, started.elapsed());
                state.latencies.borrow_mut().saturating_record(latency);
            }
            state.running.set(state.running.get() - 1);
            if state.running.get() == 0 {
                state.over.open();
            }
        });
    }
    let meter = Meter::start(job.place);
    while state.released.get() < schedule.count {
        watch.ready().await.expect("a timer");
        // Nothing to read: woken early.
        let _ = nix::unistd::read(&ticks, &mut [0; 8]);
        state.release(schedule.due(started.elapsed()));
    }
    state.over.wait().await;
    meter.stop(state.next.get(), &state.latencies.borrow())
}

/// Opens once.
#[derive(Default)]
struct Gate {
    is_open: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Gate {
    fn open(&self) {
        self.is_open.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            if self.is_open.get() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_shows_in_every_operation_that_it_held_up() {
        // 1000 per second for a second; each takes 0.1 ms, but nothing is answered from 500 to 600 ms.
        let schedule = Schedule::new(1000.0, Stop::After(Duration::from_secs(1)));
        assert_eq!(schedule.count, 1000);
        let mut latencies = histogram();
        for index in 0..schedule.count {
            let answered = Duration::from_micros(index * 1000 + 100);
            let pause = Duration::from_millis(500)..Duration::from_millis(600);
            let answered = if pause.contains(&answered) { pause.end } else { answered };
            latencies.record(schedule.latency_ns(index, answered)).unwrap();
        }
        // A closed loop would have seen one slow operation in a thousand.
        assert_eq!(latencies.count_between(1_000_000, u64::MAX), 100);
        assert!(latencies.max() > 99_000_000 && latencies.value_at_quantile(0.5) < 101_000);
        assert!(latencies.value_at_quantile(0.95) > 40_000_000);
    }

    #[test]
    fn operations_become_due_one_by_one() {
        let schedule = Schedule::new(1000.0, Stop::Operations(3));
        let due = |us| schedule.due(Duration::from_micros(us));
        assert_eq!([due(0), due(999), due(1000), due(2000), due(9000)], [1, 1, 2, 3, 3]);
    }
}
