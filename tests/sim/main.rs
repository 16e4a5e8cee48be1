//! Deterministic simulation of the core: the client's machine against model callers, network and server, on a virtual
//! clock, decided by one seed. It needs no engine: it is the third player of [`respiral::io`].
//!
//! ```text
//! cargo test --test sim                        # scenarios and 200 seeds
//! SEEDS=5000 FIRST=1000 cargo test --release --test sim seeds
//! SEED=17 cargo test --test sim seeds -- --nocapture    # one seed, with its trace
//! ```
//! First there are faults and nothing may go *wrong*; then the faults end and nothing may be *stuck*.

mod checkers;
mod faults;
mod net;
mod plan;
mod rng;
mod scenarios;
mod server;
mod socket;
mod trace;
mod wire;
mod workload;
mod world;

use checkers::Counts;
use plan::Plan;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::Trace;
use world::World;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

fn run(seed: u64, trace: Trace) -> (Counts, Vec<String>) {
    let mut world = World::new(Plan::random(seed), trace);
    let counts = world.run();
    (counts, std::mem::take(&mut world.context.trace.lines))
}

// SYS-005, SYS-006, CONN-012, CONN-040, CONN-102, RECON-007, RECON-033, H15, H16, H18-H20, H26-H28, H34
#[test]
fn seeds() {
    if let Some(seed) = number("SEED") {
        let (counts, _) = run(seed, Trace { show: true, ..Trace::default() });
        eprintln!("{counts:?}");
        return;
    }
    let first = number("FIRST").unwrap_or(1);
    let count = number("SEEDS").unwrap_or(200);
    let next = AtomicU64::new(first);
    let results = Mutex::new((Counts::default(), Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            // Each world lives and dies on one thread; threads share nothing but the list of seeds.
            let result = catch_unwind(|| run(seed, Trace::default()));
            let mut results = results.lock().expect("nothing panics while it holds this");
            match result {
                Ok((counts, _)) => results.0 += counts,
                Err(_) => {
                    eprintln!("seed {seed} failed: SEED={seed} cargo test --test sim seeds -- --nocapture");
                    results.1.push(seed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let (sum, mut failed) = results.into_inner().expect("nothing panics while it holds this");
    failed.sort_unstable();
    eprintln!("{count} seeds from {first}: {sum:?}");
    assert!(count < 200 || sum.filled > 0, "no reply was so long");
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}

// SYS-002: the same seed gives the same actions.
#[test]
fn a_seed_replays() {
    for seed in [3, 14, 159] {
        let keep = || Trace { keep: true, ..Trace::default() };
        let (first, second) = (run(seed, keep()), run(seed, keep()));
        assert!(first.1.len() > 50, "a trace worth the name");
        for (line, (a, b)) in first.1.iter().zip(&second.1).enumerate() {
            assert_eq!(a, b, "seed {seed}, line {line}");
        }
        assert_eq!(first.1.len(), second.1.len());
        assert_eq!(first.0, second.0);
    }
}
