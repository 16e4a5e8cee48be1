//! Smaller runs: what a seed's run may do without and still fail in the same place.
//!
//! A run can leave out single faults and single calls, and have parts of its plan made simple. [`shrink`] tries: first
//! the plan, then halves, quarters, … and at last single ones, as long as something can go.

use crate::plan::Plan;
use std::collections::BTreeSet;
use std::fmt;

/// What is left out. As text, for `CUTS`: `f` faults, `c` calls, `s` simplifications, as in `f1-4,9 c2 s0,3`.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Cuts {
    faults: BTreeSet<u64>,
    calls: BTreeSet<u64>,
    simple: BTreeSet<u64>,
}

/// Makes a plan simpler.
type Simplification = fn(&mut Plan);

const SIMPLER: &[Simplification] = &[
    |plan| plan.others.clear(),
    |plan| plan.client.connections = 1,
    |plan| plan.client.by_name = false,
    |plan| plan.client.idle_read_timeout = None,
    |plan| plan.client.in_flight_max = 1024,
    |plan| plan.client.queued_bytes_max = 1 << 20,
    |plan| plan.client.write_buffer = 1 << 16,
    |plan| {
        plan.client.password = false;
        plan.client.database = 0;
        plan.client.name = false;
        plan.client.set_info = false;
    },
    |plan| plan.server.pushes = 0,
    |plan| plan.server.twists = 0,
    |plan| plan.server.replica_lag = None,
    |plan| plan.server.unread_max = usize::MAX,
    |plan| plan.server.refuses_optional = false,
    |plan| plan.server.loading_until = 0,
    |plan| plan.net.piece_max = 1 << 16,
    |plan| plan.net.send_buffer = 1 << 16,
    |plan| plan.net.take_max = 1 << 16,
    |plan| plan.net.sent_lag_max = 1,
    |plan| plan.net.close_lag_max = 1,
    |plan| plan.net.stale = 0,
    |plan| plan.crowd.drops = 0,
    |plan| plan.crowd.own_timeouts = 0,
    |plan| plan.crowd.keep_max = 0,
    |plan| plan.crowd.reply_max = 20,
    |plan| plan.crowd.value_max = 10,
    |plan| plan.buffers = (64, 16_384),
    |plan| plan.turn_budget = 64,
    |plan| plan.close_at = None,
];

impl Cuts {
    pub fn has_fault(&self, number: u64) -> bool {
        self.faults.contains(&number)
    }

    pub fn has_call(&self, number: u64) -> bool {
        self.calls.contains(&number)
    }

    pub fn simplify(&self, plan: &mut Plan) {
        self.simple.iter().filter_map(|index| SIMPLER.get(*index as usize)).for_each(|simpler| simpler(plan));
    }

    fn sets(&mut self) -> [&mut BTreeSet<u64>; 3] {
        [&mut self.simple, &mut self.calls, &mut self.faults]
    }

    /// # Panics
    /// When the text is none of ours.
    pub fn parse(text: &str) -> Self {
        let wrong = || -> ! { panic!("CUTS must be like \"f1-4,9 c2 s0,3\", not {text:?}") };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| wrong());
        let mut cuts = Self::default();
        for part in text.split_whitespace() {
            let set = match part.chars().next() {
                Some('f') => &mut cuts.faults,
                Some('c') => &mut cuts.calls,
                Some('s') => &mut cuts.simple,
                _ => wrong(),
            };
            for range in part[1..].split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                set.extend(number(first)..=number(last));
            }
        }
        cuts
    }
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for (kind, set) in [("f", &self.faults), ("c", &self.calls), ("s", &self.simple)] {
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            for number in set {
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == *number => *last = *number,
                    _ => ranges.push((*number, *number)),
                }
            }
            for (at, (first, last)) in ranges.iter().enumerate() {
                match at {
                    0 => write!(f, "{gap}{kind}")?,
                    _ => write!(f, ",")?,
                }
                write!(f, "{first}")?;
                if last > first {
                    write!(f, "-{last}")?;
                }
                gap = " ";
            }
        }
        Ok(())
    }
}

/// The least that fails, of a run with so many calls and faults, within `tries`. `size` is what happens in a run, if it
/// fails: less may be left of the plan, and yet it may go on for longer.
pub fn shrink(
    calls: u64,
    faults: u64,
    mut tries: usize,
    mut size: impl FnMut(&Cuts) -> Option<usize>,
) -> Cuts {
    let all: [Vec<u64>; 3] =
        [(0..SIMPLER.len() as u64).collect(), (1..=calls).collect(), (1..=faults).collect()];
    let mut best = Cuts::default();
    let mut least = size(&best).unwrap_or(usize::MAX);
    loop {
        let before = best.clone();
        for (kind, all) in all.iter().enumerate() {
            let mut piece = all.len();
            while piece > 0 {
                let left: Vec<u64> =
                    all.iter().filter(|number| !best.sets()[kind].contains(number)).copied().collect();
                for numbers in left.chunks(piece) {
                    let mut smaller = best.clone();
                    smaller.sets()[kind].extend(numbers);
                    if tries == 0 {
                        return best;
                    }
                    tries -= 1;
                    if let Some(size) = size(&smaller).filter(|size| *size <= least) {
                        (best, least) = (smaller, size);
                    }
                }
                piece /= 2;
            }
        }
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_text_and_back() {
        for text in ["", "f1", "f1-3,7 c2 s0,5-6", "c1-100"] {
            assert_eq!(Cuts::parse(text).to_string(), text);
        }
    }

    // What fails needs two calls and one fault: all else goes.
    #[test]
    fn only_what_is_needed_is_left() {
        let needed = |cuts: &Cuts| !cuts.has_call(17) && !cuts.has_call(60) && !cuts.has_fault(5);
        let least = shrink(100, 9, 2000, |cuts| needed(cuts).then(|| 1000 - cuts.calls.len()));
        assert_eq!(least.to_string(), format!("f1-4,6-9 c1-16,18-59,61-100 s0-{}", SIMPLER.len() - 1));
    }
}
