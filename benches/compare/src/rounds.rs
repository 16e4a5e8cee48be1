//! Rounds: each side runs once per round, in a process of its own, so that drift of the machine meets all of them.

use crate::clients::Side;
use crate::meter::{Place, Sample};
use crate::plan::Scenario;
use std::fmt;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How runs are made.
#[derive(Clone, Debug)]
pub struct Settings {
    pub url: String,
    pub rounds: usize,
    /// Length of a measured run.
    pub time: Duration,
    pub place: Place,
}

/// A run that gave no figures, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError(pub String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One side under one scenario.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub settings: &'a Settings,
    pub scenario: &'a Scenario,
    pub side: Side,
}

/// A run that has not ended by then is ended, and counts as failed. Instrumented runs are slow.
const RUN_MAX: Duration = Duration::from_secs(60);

impl Run<'_> {
    pub fn measure(&self) -> Result<Sample, RunError> {
        let ms = self.settings.time.as_millis().to_string();
        parse(&self.start(&[], &["--ms", &ms])?.0)
    }

    pub fn counting_allocations(&self) -> Result<Sample, RunError> {
        let ops = self.scenario.short_run().to_string();
        parse(&self.start(&[], &["--ops", &ops, "--warm-up-ms", "20", "--count-allocations"])?.0)
    }

    /// What a tool prints about a run of so many operations.
    pub fn under(&self, tool: &[&str], ops: u64) -> Result<String, RunError> {
        Ok(self.start(tool, &["--ops", &ops.to_string(), "--warm-up-ms", "0"])?.1)
    }

    /// Standard output and standard error of the process.
    fn start(&self, tool: &[&str], extra: &[&str]) -> Result<(String, String), RunError> {
        let failed = |error: std::io::Error| RunError(error.to_string());
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = match tool {
            [] => Command::new(program),
            [name, options @ ..] => {
                let mut command = Command::new(name);
                command.args(options).arg(program);
                command
            }
        };
        let settings = self.settings;
        command
            .args(["one", &self.side.name(), "--is-loaded", "--url", &settings.url])
            .args(self.scenario.arguments());
        let Place { client_core, server_core, server_pid } = settings.place;
        command.args(["--client-core", &client_core.to_string(), "--server-core", &server_core.to_string()]);
        if let Some(pid) = server_pid {
            command.args(["--server-pid", &pid.to_string()]);
        }
        command.args(extra);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        outcome(command.spawn().map_err(failed)?)
    }
}

fn outcome(mut child: Child) -> Result<(String, String), RunError> {
    let (sender, receiver) = mpsc::channel();
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    // Both pipes are read until the process ends; what a run prints to standard error fits into a pipe.
    std::thread::spawn(move || {
        let (mut text, mut faults) = (String::new(), String::new());
        let _ = out.read_to_string(&mut text);
        let _ = err.read_to_string(&mut faults);
        let _ = sender.send((text, faults));
    });
    let texts = receiver.recv_timeout(RUN_MAX);
    if texts.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| RunError(error.to_string()))?;
    match texts {
        Err(_) => Err(RunError(format!("no end after {} s", RUN_MAX.as_secs()))),
        Ok((_, faults)) if !status.success() => Err(RunError(brief(&faults))),
        Ok(texts) => Ok(texts),
    }
}

/// What a process printed before it failed, on one line.
fn brief(text: &str) -> String {
    const CHARACTERS_MAX: usize = 400;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(CHARACTERS_MAX).collect()
}

fn parse(text: &str) -> Result<Sample, RunError> {
    serde_json::from_str(text).map_err(|error| RunError(format!("{error}: {text}")))
}

/// The order of sides in a round: each round begins with another one, so that none always follows the same.
pub fn order(sides: &[Side], round: usize) -> impl Iterator<Item = Side> {
    let start = round % sides.len().max(1);
    sides[start..].iter().chain(&sides[..start]).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_round_has_every_side_once() {
        let sides = Side::value_variants();
        for round in 0..20 {
            let names: std::collections::HashSet<String> = order(sides, round).map(Side::name).collect();
            assert_eq!(names.len(), sides.len());
        }
        assert_eq!(order(sides, 1).next(), Some(sides[1]));
    }
}
