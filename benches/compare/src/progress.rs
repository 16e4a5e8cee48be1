//! Where a long run is: one line on standard error that is written over, or a line per scenario when nobody watches.

use std::io::{IsTerminal, Write};
use std::time::Instant;

pub struct Progress {
    started: Instant,
    /// Steps done, of how many.
    step: usize,
    steps: usize,
    is_terminal: bool,
    heading: String,
}

impl Progress {
    pub fn new(steps: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { started: Instant::now(), step: 0, steps, is_terminal, heading: String::new() }
    }

    pub fn heading(&mut self, heading: String) {
        if !self.is_terminal {
            eprintln!("{heading}{}", self.left());
        }
        self.heading = heading;
    }

    pub fn step(&mut self, what: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[K{}: {what}{}", self.heading, self.left());
            let _ = std::io::stderr().flush();
        }
        self.step += 1;
    }

    pub fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }

    /// A guess that becomes better.
    fn left(&self) -> String {
        let elapsed = self.started.elapsed().as_secs_f64();
        if self.step == 0 {
            return String::new();
        }
        let seconds = elapsed / self.step as f64 * (self.steps - self.step) as f64;
        format!(", {:.0} s so far, about {seconds:.0} s left", elapsed)
    }
}
