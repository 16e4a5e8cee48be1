//! What repeats on any machine: allocations, system calls, user instructions. Each in runs of its own, since counting
//! costs time.

use crate::rounds::{Run, RunError};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// Per operation; absent where the tool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub allocations: Option<f64>,
    pub allocated_bytes: Option<f64>,
    /// The most heap that the client had at once, in bytes: not per operation.
    #[serde(default)]
    pub peak_heap_bytes: Option<f64>,
    pub system_calls: Option<f64>,
    pub user_instructions: Option<f64>,
}

/// What can be counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    pub perf: bool,
    pub valgrind: bool,
}

const PERF: &[&str] = &["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter"];
const CALLGRIND: &[&str] = &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];

impl Tools {
    pub fn find() -> Self {
        Self { perf: works(PERF), valgrind: works(&["valgrind", "--version"]) }
    }
}

fn works(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    if words == PERF {
        command.arg("true");
    }
    command.output().is_ok_and(|output| output.status.success())
}

/// What was counted before something failed stays.
pub fn count(
    run: &Run<'_>,
    tools: Tools,
    is_instructions: bool,
    counts: &mut Counts,
) -> Result<(), RunError> {
    let sample = run.counting_allocations()?;
    counts.allocations = Some(sample.allocations);
    counts.allocated_bytes = Some(sample.allocated_bytes);
    counts.peak_heap_bytes = Some(sample.peak_heap_bytes);
    let n = run.scenario.short_run();
    if tools.perf {
        counts.system_calls = difference(run, PERF, n, perf_count)?;
    }
    if tools.valgrind && is_instructions {
        counts.user_instructions = difference(run, CALLGRIND, n, callgrind_count)?;
    }
    Ok(())
}

/// Two runs, the second of twice as many operations: what starting and ending cost falls out. Nothing where that differed by
/// more than the operations took.
fn difference(
    run: &Run<'_>,
    tool: &[&str],
    n: u64,
    read: fn(&str) -> Option<f64>,
) -> Result<Option<f64>, RunError> {
    let count = |ops| {
        let text = run.under(tool, ops)?;
        read(&text).ok_or_else(|| RunError(format!("{} printed no count: {text}", tool[0])))
    };
    let per_operation = (count(2 * n)? - count(n)?) / n as f64;
    Ok((per_operation >= 0.0).then_some(per_operation))
}

fn perf_count(text: &str) -> Option<f64> {
    text.lines().find(|line| line.contains("raw_syscalls:sys_enter"))?.split(',').next()?.parse().ok()
}

fn callgrind_count(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.split("Collected : ").nth(1))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_read() {
        assert_eq!(perf_count("x\n4242,,raw_syscalls:sys_enter,1,100.00,,\n"), Some(4242.0));
        assert_eq!(callgrind_count("==1== \n==1== Collected : 123456\n"), Some(123_456.0));
        assert_eq!(perf_count("<not counted>,,raw_syscalls:sys_enter"), None);
    }
}
