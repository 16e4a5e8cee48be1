//! Where and how it was measured.

use crate::counts::Tools;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Environment {
    pub date: String,
    /// The exact command.
    pub command: String,
    pub commit: String,
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    pub server: String,
    pub client_core: usize,
    pub server_core: usize,
    pub rounds: usize,
    pub run_ms: u64,
    /// Clients and runtimes, as they were built in.
    pub versions: BTreeMap<String, String>,
    pub tools: Option<Tools>,
    pub took_s: u64,
}

impl Environment {
    pub fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        let directory = env!("CARGO_MANIFEST_DIR");
        Self {
            date: output("date", &["-u", "+%F %H:%M UTC"]),
            command: command_line(std::env::args()),
            commit: output("git", &["-C", directory, "describe", "--always", "--dirty"]),
            kernel: output("uname", &["-sr"]),
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            versions: versions(include_str!("../../Cargo.lock")),
            ..Self::default()
        }
    }
}

/// The program by its file name, as the rest is what matters.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    let Some((program, options)) = words.split_first() else { return String::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    std::iter::once(name).chain(options.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

fn output(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.map_or_else(|| "unknown".to_owned(), |text| String::from_utf8_lossy(&text).trim().to_owned())
}

/// From the lock file: what this program was built with.
fn versions(lock: &str) -> BTreeMap<String, String> {
    let mut wanted = vec!["respiral", "monoio", "tokio", "tokio-uring"];
    wanted.extend(cfg!(feature = "redis-rs").then_some("redis"));
    wanted.extend(cfg!(feature = "fred").then_some("fred"));
    wanted.extend(cfg!(feature = "rustis").then_some("rustis"));
    let packages = lock.split("[[package]]").filter_map(|package| {
        let field = |name: &str| package.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix('"'));
        Some((field("name = \"")?.to_owned(), field("version = \"")?.to_owned()))
    });
    packages.filter(|(name, _)| wanted.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let versions = versions(include_str!("../../Cargo.lock"));
        assert!(versions["monoio"].starts_with("0.2"));
        assert_eq!(versions.contains_key("fred"), cfg!(feature = "fred"));
    }

    #[test]
    fn the_command_is_whole() {
        let words = ["/a/b/respiral-compare", "--w", "1,32"].map(String::from);
        assert_eq!(command_line(words.into_iter()), "respiral-compare --w 1,32");
    }
}
