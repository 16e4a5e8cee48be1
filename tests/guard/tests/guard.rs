//! No piece of the hot path may grow by more than 5 % in instructions, or allocate more, unless `baselines.txt` changes
//! in the same commit. `BLESS=1` writes it anew.
//!
//! Counts need valgrind and the compiler that the baselines were made with; without, the test says so and checks only the
//! allocations, which do not depend on either.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test of a program")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const GUARD: &str = env!("CARGO_BIN_EXE_guard");
/// Instructions that a piece may cost more than its baseline, in per cent.
const TOLERANCE: i64 = 5;

/// Instructions and allocations of one run of a piece.
type Figures = BTreeMap<String, (i64, u64)>;

fn baselines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines.txt")
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn compiler() -> String {
    output(Command::new("rustc").arg("--version")).trim().to_owned()
}

/// Instructions of a whole process.
fn instructions(piece: &str, times: usize) -> i64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", GUARD, piece, &times.to_string()]);
    let text = output(&mut command);
    let line = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("no count in {text}"))
}

fn measure(with_instructions: bool) -> Figures {
    const TIMES: usize = 2000;
    let pieces = output(Command::new(GUARD).arg("list"));
    let figures = pieces.lines().map(|piece| {
        let allocations =
            output(Command::new(GUARD).args([piece, &TIMES.to_string()])).trim().parse::<u64>().unwrap();
        let cost = match with_instructions {
            true => (instructions(piece, 2 * TIMES) - instructions(piece, TIMES)) / TIMES as i64,
            false => 0,
        };
        (piece.to_owned(), (cost, allocations / (TIMES as u64 / 2)))
    });
    figures.collect()
}

fn read() -> (String, Figures) {
    let text = std::fs::read_to_string(baselines()).unwrap();
    let (compiler, rest) = text.split_once('\n').unwrap();
    let figures = rest.lines().map(|line| {
        let words: Vec<&str> = line.split('\t').collect();
        let [piece, cost, allocations] = words[..] else { panic!("not a baseline: {line}") };
        (piece.to_owned(), (cost.parse().unwrap(), allocations.parse().unwrap()))
    });
    (compiler.to_owned(), figures.collect())
}

#[test]
fn no_piece_costs_more_than_before() {
    if cfg!(debug_assertions) {
        return eprintln!(
            "the hot path is measured in release builds: cargo test --release -p respiral-guard"
        );
    }
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if std::env::var_os("BLESS").is_some() {
        let lines = measure(true)
            .into_iter()
            .map(|(piece, (cost, allocations))| format!("{piece}\t{cost}\t{allocations}\n"));
        return std::fs::write(baselines(), format!("{}\n{}", compiler(), lines.collect::<String>()))
            .unwrap();
    }
    let (made_with, before) = read();
    let comparable = has_valgrind && made_with == compiler();
    if !comparable {
        eprintln!("instructions are not compared: valgrind is there: {has_valgrind}; made with {made_with}");
    }
    let now = measure(comparable);
    assert!(now.keys().eq(before.keys()), "pieces changed: BLESS=1 writes the baselines anew");
    let mut worse = Vec::new();
    for (piece, (cost, allocations)) in &now {
        let (cost_before, allocations_before) = before[piece];
        println!("{piece}: {cost} instructions ({cost_before} before), {allocations} allocations");
        if *allocations > allocations_before
            || comparable && *cost > cost_before + cost_before * TOLERANCE / 100
        {
            worse.push(piece);
        }
    }
    assert!(
        worse.is_empty(),
        "these cost more than before: {worse:?}; BLESS=1 accepts that, and the commit says why"
    );
}
