//! A run in words, for those who look for what went wrong.

use respiral::io::{Completion, ConnectionId};

/// What happened, in words. Kept or shown only on demand: most runs need none.
#[derive(Default)]
pub struct Trace {
    pub keep: bool,
    pub show: bool,
    pub lines: Vec<String>,
}

impl Trace {
    pub fn note(&mut self, now: u64, text: impl FnOnce() -> String) {
        if !self.keep && !self.show {
            return;
        }
        let line = format!("{:>10.3} ms  {}", now as f64 / 1000.0, text());
        if self.show {
            eprintln!("{line}");
        }
        if self.keep {
            self.lines.push(line);
        }
    }
}

pub fn name(id: ConnectionId) -> String {
    format!("#{}.{}", id.index, id.generation)
}

pub fn describe(completion: &Completion) -> String {
    let id = name(completion.id());
    match completion {
        Completion::Resolved { addresses, .. } => format!("{id} resolved to {} addresses", addresses.len()),
        Completion::Connected { .. } => format!("{id} connected"),
        Completion::Received { segment, .. } => {
            let start: String =
                String::from_utf8_lossy(&segment[..segment.len().min(40)]).escape_debug().collect();
            format!("{id} received {} bytes: {start}", segment.len())
        }
        Completion::Filled { block, .. } => format!("{id} filled: {block:?}"),
        Completion::Sent { bytes, .. } => format!("{id} sent {bytes}"),
        Completion::Failed { failure, .. } => format!("{id} failed: {failure}"),
        Completion::Closed { .. } => format!("{id} closed"),
    }
}
