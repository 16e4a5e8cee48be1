//! Deterministic simulation of the core: clients' machines against model callers, network and servers, on a virtual
//! clock, decided by one seed. It needs no engine: it is the third player of [`respiral::io`].
//!
//! ```text
//! cargo test --test sim                        # scenarios and 500 seeds
//! tests/sim/run 250000                         # many seeds, on all cores; FIRST=1000 begins there
//! SEED=17 cargo test --test sim seeds -- --nocapture    # one seed, with its trace
//! ```
//! First there are faults and nothing may go *wrong*; then the faults end and nothing may be *stuck*. What is checked
//! stands in [`checkers`] and in [`thread`]; the first run that fails is made small ([`shrink`]) and shown.

mod answer;
mod checkers;
mod faults;
mod net;
mod parts;
mod plan;
#[cfg(feature = "planted-faults")]
mod planted;
mod rng;
mod runner;
mod scenarios;
mod servers;
mod shrink;
mod socket;
mod thread;
mod trace;
mod wire;
mod workload;
mod world;

use runner::{explain, run, sweep};
use shrink::Cuts;
use trace::Trace;

/// As many seeds as `./test` runs.
const SEEDS: u64 = 500;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

// SYS-005, SYS-006, CONN-012, CONN-040, CONN-102, RECON-007, RECON-033, H15, H16, H18-H20, H26-H28, H34
#[test]
fn seeds() {
    if let Some(seed) = number("SEED") {
        let cuts = Cuts::parse(&std::env::var("CUTS").unwrap_or_default());
        let run = run(seed, &cuts, Trace { show: true, ..Trace::default() });
        eprintln!("{:?}", run.counts);
        assert!(run.failure.is_none(), "{:?}", run.failure);
        return;
    }
    let count = number("SEEDS").unwrap_or(SEEDS);
    match sweep(number("FIRST").unwrap_or(1), count) {
        Ok(sum) => assert!(count < SEEDS || sum.filled > 0, "no reply was so long"),
        Err((seed, failure)) => panic!("{}", explain(seed, &failure)),
    }
}

// SYS-002: the same seed gives the same actions.
#[test]
fn a_seed_replays() {
    for seed in [3, 14, 159] {
        let keep = || Trace { keep: true, ..Trace::default() };
        let (first, second) = (run(seed, &Cuts::default(), keep()), run(seed, &Cuts::default(), keep()));
        assert!(first.trace.len() > 50, "a trace worth the name");
        for (line, (a, b)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(a, b, "seed {seed}, line {line}");
        }
        assert_eq!(first.trace.len(), second.trace.len());
        assert_eq!(first.counts, second.counts);
    }
}
