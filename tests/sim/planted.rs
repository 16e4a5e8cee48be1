//! A checker that has never failed proves nothing: faults are planted in the core, one after the other, and each must be
//! caught within the seeds that `./test` runs.
//!
//! ```text
//! cargo test --features planted-faults --test sim planted -- --nocapture    # a table of what caught what
//! PLANTED=WakeLost SEED=3 cargo test --features planted-faults --test sim seeds -- --nocapture
//! ```

use crate::SEEDS;
use crate::runner::{Failure, explain, run};
use crate::shrink::Cuts;
use crate::trace::Trace;
use respiral::planted::{Planted, plant};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Plants what the environment names, if it does, for a look at one.
pub fn plant_from_env() {
    let Ok(name) = std::env::var("PLANTED") else { return };
    let known = Planted::ALL.iter().find(|(fault, _)| format!("{fault:?}") == name);
    plant(Some(known.unwrap_or_else(|| panic!("PLANTED: {name} is none of {:?}", Planted::ALL)).0));
}

/// The first seed that fails, and why.
fn catch(fault: Planted) -> Option<(u64, Failure)> {
    plant(Some(fault));
    let caught =
        (1..=SEEDS).find_map(|seed| Some((seed, run(seed, &Cuts::default(), Trace::default()).failure?)));
    plant(None);
    caught
}

#[test]
fn planted_faults_are_caught() {
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    let work = || {
        while let Some((fault, what)) = Planted::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = catch(*fault);
            caught.lock().expect("nothing panics while it holds this").push((*fault, what, result));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut caught = caught.into_inner().expect("nothing panics while it holds this");
    caught.sort_by_key(|(fault, ..)| *fault as usize);
    for (fault, what, result) in &caught {
        match result {
            Some((seed, failure)) => {
                let text: String = failure.text.chars().take(120).collect();
                eprintln!(
                    "{fault:?}:{what}\n    seed {seed}, {}: {}",
                    failure.place,
                    text.replace('\n', " ")
                );
            }
            None => eprintln!("{fault:?}:{what}\n    NOT CAUGHT"),
        }
    }
    let missed: Vec<_> =
        caught.iter().filter(|(.., result)| result.is_none()).map(|(fault, ..)| fault).collect();
    assert!(missed.is_empty(), "planted and not caught within {SEEDS} seeds: {missed:?}");
    assert_eq!(caught.len(), Planted::ALL.len());
}

// A failure is shown as small as it can be made: a handful of calls, what happened to them, and how to see it again.
#[test]
fn a_failure_is_made_small() {
    let (seed, failure) = catch(Planted::HoldLeaked).expect("caught");
    plant(Some(Planted::HoldLeaked));
    let whole = run(seed, &Cuts::default(), Trace { keep: true, ..Trace::default() });
    let text = explain(seed, &failure);
    plant(None);
    eprintln!("{text}");
    assert!(text.contains(&format!("SEED={seed} CUTS=")) && text.contains(&failure.place));
    assert!(
        text.lines().count() * 4 < whole.trace.len(),
        "{} lines of {}",
        text.lines().count(),
        whole.trace.len()
    );
}

#[test]
fn the_list_is_in_the_docs() {
    let page = include_str!("../../docs/proven.md");
    for (fault, what) in Planted::ALL {
        assert!(
            page.contains(&format!("| `{fault:?}` |{} |", what.trim_end_matches('.'))),
            "{fault:?} is missing"
        );
    }
}
