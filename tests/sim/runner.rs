//! Many seeds on all cores: progress and rate, the first failure, and what is left of it when it is made small.

use crate::checkers::Counts;
use crate::plan::Plan;
use crate::shrink::{Cuts, shrink};
use crate::trace::Trace;
use crate::world::World;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

/// What one run came to.
pub struct Run {
    pub counts: Counts,
    pub trace: Vec<String>,
    pub calls: u64,
    pub faults: u64,
    pub failure: Option<Failure>,
}

/// Which checker spoke, and what it said.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    pub place: String,
    pub text: String,
}

thread_local! {
    /// `Some` while this thread runs a world: its panics are results.
    static FAILURE: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

fn listen_to_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let heard = FAILURE.with_borrow_mut(|failure| {
                let Some(failure) = failure else { return false };
                let text = info.payload_as_str().unwrap_or("a panic without words");
                let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
                // The first one: what is dropped afterwards may panic, too.
                if failure.place.is_empty() {
                    *failure = Failure { place: place.unwrap_or_default(), text: text.to_owned() };
                }
                true
            });
            if !heard {
                usual(info);
            }
        }));
    });
}

/// The run of a seed, without what is cut.
pub fn run(seed: u64, cuts: &Cuts, trace: Trace) -> Run {
    listen_to_panics();
    #[cfg(feature = "planted-faults")]
    crate::planted::plant_from_env();
    FAILURE.set(Some(Failure::default()));
    let mut world = World::without(Plan::random(seed), cuts.clone(), trace);
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    let run = Run {
        counts: world.context.ledger.counts,
        trace: std::mem::take(&mut world.context.trace.lines),
        calls: world.context.asked,
        faults: world.strikes,
        failure: None,
    };
    // A machine that a panic went through may panic again when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(world)));
    let failure = FAILURE.take().unwrap_or_default();
    let failed = result.is_err() || !failure.place.is_empty();
    Run { failure: failed.then_some(failure), ..run }
}

/// The seeds `first..first + count`. Gives the sum of what was seen, or the first seed that failed and why.
pub fn sweep(first: u64, count: u64) -> Result<Counts, (u64, Failure)> {
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let state = Mutex::new((Counts::default(), None));
    // At the beginning: what lies in the checkout may change while this runs.
    let (start, commit) = (now(), commit());
    let progress = Mutex::new(start);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            // Each world lives and dies on one thread; threads share nothing but the list of seeds.
            let run = run(seed, &Cuts::default(), Trace::default());
            let mut state = state.lock().expect("nothing panics while it holds this");
            state.0 += run.counts;
            if let Some(failure) = run.failure {
                stop.store(true, Ordering::Relaxed);
                if state.1.as_ref().is_none_or(|(other, _)| seed < *other) {
                    state.1 = Some((seed, failure));
                }
            }
            drop(state);
            let mut last = progress.lock().expect("nothing panics while it holds this");
            if last.elapsed() > Duration::from_secs(5) {
                *last = now();
                let done = seed - first;
                let rate = done as f64 / start.elapsed().as_secs_f64();
                eprintln!("{done} of {count} seeds, {rate:.0} a second");
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let (counts, failed) = state.into_inner().expect("nothing panics while it holds this");
    let time = start.elapsed().as_secs_f64();
    let (each, rate) = (counts.time as f64 / 1e6 / count as f64, count as f64 / time);
    eprintln!("{count} seeds from {first} at {commit}: {rate:.0} a second, {each:.1} virtual seconds each");
    eprintln!("{counts:?}");
    failed.map_or(Ok(counts), Err)
}

#[expect(clippy::disallowed_methods, reason = "for the rate that is shown to whoever waits")]
fn now() -> Instant {
    Instant::now()
}

/// What is tested.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "an unknown commit".into() };
    let changed = git(&["status", "--porcelain"]).is_some_and(|text| !text.is_empty());
    if changed { format!("{commit} (changed)") } else { commit }
}

/// Everything that helps to understand a failure: the smallest run that fails in the same place, and how to see it again.
pub fn explain(seed: u64, failure: &Failure) -> String {
    let whole = run(seed, &Cuts::default(), Trace::default());
    let size = |run: &Run| {
        let is_same = run.failure.as_ref().is_some_and(|found| found.place == failure.place);
        is_same.then_some(run.trace.len())
    };
    let trial = |cuts: &Cuts| size(&run(seed, cuts, Trace { keep: true, ..Trace::default() }));
    let cuts = shrink(whole.calls, whole.faults, 1000, trial);
    let least = run(seed, &cuts, Trace { keep: true, ..Trace::default() });
    let mut lines = least.trace;
    lines.push(format!("{}: {}", failure.place, least.failure.unwrap_or_default().text));
    lines.push(format!(
        "seed {seed} fails at {}; {} of {} calls and {} of {} faults are left. See it again:",
        commit(),
        least.counts.calls,
        whole.counts.calls,
        least.counts.faults,
        whole.counts.faults,
    ));
    lines.push(format!("  SEED={seed} CUTS=\"{cuts}\" cargo test --test sim seeds -- --nocapture"));
    lines.push(format!("and whole: SEED={seed} cargo test --test sim seeds -- --nocapture"));
    lines.join("\n")
}
