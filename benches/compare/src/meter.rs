//! What a run costs its process: clocks and counters of the kernel, read before and after.

use crate::alloc;
use hdrhistogram::Histogram;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};
use respiral_testkit::alloc_count::{self, Counts};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Latencies from 1 ns to a minute, with three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("fixed bounds")
}

/// One run; per operation where the name does not say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub ops: f64,
    pub seconds: f64,
    pub ops_per_second: f64,
    /// CPU time of all threads. The sum is exact; the kernel divides it into user and system by samples.
    pub cpu_ns: f64,
    pub user_ns: f64,
    pub system_ns: f64,
    pub context_switches: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    /// Of the whole process, the harness with it, from when the client began to connect.
    pub peak_rss_kib: f64,
    /// What of that came since then: the client's peak, in touched pages. And in heap bytes, touched or not, when counted.
    #[serde(default)]
    pub peak_grown_bytes: f64,
    #[serde(default)]
    pub peak_heap_bytes: f64,
    /// CPU time of client and server against the time that passed: 1 is a whole core. The server's is not known when it
    /// was given by URL: then it is what its core did.
    pub client_busy: f64,
    pub server_busy: f64,
    /// Share of the two cores that other processes used.
    pub others: f64,
    /// Share of both cores' time that the hypervisor gave to others.
    pub steal: f64,
    /// Zero unless the run counted them.
    pub allocations: f64,
    pub allocated_bytes: f64,
    /// Idle connections only: heap and resident memory of each.
    pub heap_bytes_per_connection: f64,
    pub rss_bytes_per_connection: f64,
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub client_core: usize,
    pub server_core: usize,
    pub server_pid: Option<u32>,
}

pub struct Meter {
    place: Place,
    server_ns: Option<f64>,
    busy: [CoreTime; 2],
    counts: Counts,
    usage: Usage,
    cpu_ns: f64,
    started: Instant,
}

impl Meter {
    pub fn start(place: Place) -> Self {
        // What allocates comes before the count, what takes time before the clocks.
        let busy = core_times(place);
        let server_ns = place.server_pid.map(process_ns);
        let (counts, usage) = (counts(), usage());
        Self { place, server_ns, busy, counts, usage, cpu_ns: cpu_ns(), started: Instant::now() }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn stop(self, ops: u64, latencies: &Histogram<u64>) -> Sample {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu_ns = cpu_ns() - self.cpu_ns;
        let usage = usage();
        let counts = counts() - self.counts;
        let server_ns = self.place.server_pid.map(process_ns);
        let busy = core_times(self.place);
        let n = ops as f64;
        let user = self::seconds(usage.user_time()) - self::seconds(self.usage.user_time());
        let system = self::seconds(usage.system_time()) - self::seconds(self.usage.system_time());
        let user_share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        let client = busy[0].since(&self.busy[0]);
        let server = busy[1].since(&self.busy[1]);
        let client_busy = cpu_ns / seconds / 1e9;
        let of_server = server_ns.zip(self.server_ns).map(|(now, then)| (now - then) / seconds / 1e9);
        let server_busy = of_server.unwrap_or_else(|| server.busy_share());
        let all = client.busy_share() + server.busy_share();
        let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
        Sample {
            ops: n,
            seconds,
            ops_per_second: n / seconds,
            cpu_ns: cpu_ns / n,
            user_ns: cpu_ns / n * user_share,
            system_ns: cpu_ns / n * (1.0 - user_share),
            context_switches: (context_switches(&usage) - context_switches(&self.usage)) / n,
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: latencies.max() as f64 / 1e3,
            peak_rss_kib: status_kib("VmHWM:"),
            client_busy,
            server_busy,
            others: ((all - client_busy - server_busy) / 2.0).max(0.0),
            steal: (client.stolen + server.stolen) / (client.total() + server.total()).max(1.0),
            allocations: counts.allocations as f64 / n,
            allocated_bytes: counts.bytes_allocated as f64 / n,
            ..Sample::default()
        }
    }
}

fn counts() -> Counts {
    if alloc::is_counting() { alloc_count::total() } else { Counts::default() }
}

/// CPU time of all threads of this process, those that have ended and the kernel's workers of its rings with them.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("this process");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

/// CPU time of another process, its threads together.
fn process_ns(pid: u32) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let of_task = |task: std::fs::DirEntry| {
        let exact = read(&task.path().join("schedstat").to_string_lossy());
        exact.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0)
    };
    tasks.flatten().map(of_task).sum()
}

/// Of all threads, in the kernel's own words: user and system time, context switches.
fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("this process")
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

fn context_switches(usage: &Usage) -> f64 {
    (usage.voluntary_context_switches() + usage.involuntary_context_switches()) as f64
}

/// A line of `/proc/self/status` that is a size.
pub fn status_kib(name: &str) -> f64 {
    let status = read("/proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

/// Lets `VmHWM` begin anew, at what is resident now.
pub fn reset_peak_rss() {
    if let Err(error) = std::fs::write("/proc/self/clear_refs", "5") {
        eprintln!("compare: peaks of memory include the harness's: /proc/self/clear_refs: {error}");
    }
}

/// Ticks of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CoreTime {
    busy: f64,
    idle: f64,
    stolen: f64,
}

impl CoreTime {
    /// From a line of `/proc/stat`: user nice system idle iowait irq softirq steal.
    fn parse(line: &str) -> Self {
        let ticks: Vec<f64> =
            line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
        let sum = |fields: &[usize]| fields.iter().filter_map(|&i| ticks.get(i)).sum();
        Self { busy: sum(&[0, 1, 2, 5, 6]), idle: sum(&[3, 4]), stolen: sum(&[7]) }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            busy: self.busy - earlier.busy,
            idle: self.idle - earlier.idle,
            stolen: self.stolen - earlier.stolen,
        }
    }

    fn total(&self) -> f64 {
        self.busy + self.idle + self.stolen
    }

    fn busy_share(&self) -> f64 {
        self.busy / self.total().max(1.0)
    }
}

fn core_times(place: Place) -> [CoreTime; 2] {
    let stat = read("/proc/stat");
    [place.client_core, place.server_core].map(|core| {
        let name = format!("cpu{core} ");
        stat.lines().find(|line| line.starts_with(&name)).map(CoreTime::parse).unwrap_or_default()
    })
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_busy_idle_or_stolen() {
        let early = CoreTime::parse("cpu0 100 0 100 1000 0 0 0 0 0 0");
        let late = CoreTime::parse("cpu0 120 0 110 1040 10 5 5 10 0 0").since(&early);
        assert_eq!(late, CoreTime { busy: 40.0, idle: 50.0, stolen: 10.0 });
        assert_eq!(late.busy_share(), 0.4);
    }

    #[test]
    fn a_peak_is_that_since_the_last_reset() {
        let touch = |bytes: usize| drop(std::hint::black_box(vec![1_u8; bytes]));
        touch(64 << 20);
        let before = status_kib("VmHWM:");
        reset_peak_rss();
        let after = status_kib("VmHWM:");
        assert!(after < before - 32_000.0, "{before} KiB, then {after}");
        touch(16 << 20);
        let grown = status_kib("VmHWM:") - after;
        assert!((12_000.0..40_000.0).contains(&grown), "{grown} KiB");
    }

    #[test]
    fn a_busy_thread_is_seen() {
        let meter =
            Meter::start(Place { client_core: 0, server_core: 1, server_pid: Some(std::process::id()) });
        let mut sum = 0_u64;
        while meter.elapsed() < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        let sample = meter.stop(1, &histogram());
        assert!(
            sample.cpu_ns > 2e6
                && sample.server_busy > 0.1
                && sample.seconds >= 0.02
                && sample.peak_rss_kib > 100.0
        );
    }
}
