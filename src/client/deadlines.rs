//! The deadlines of all calls, by batches.
//!
//! Calls with the same timeout that begin between two [`stamp`](Deadlines::stamp)s expire together. They share a batch,
//! which counts those that are not over; a call knows its batch, so that going in and out is to count. (Heaps take 37 to
//! 190 ns a command, H36.)
//!
//! Batches of the same timeout expire in the order in which they were stamped, so each distinct timeout has a ring of its
//! own; more distinct timeouts than [`CLASSES`] share one sorted map. The rings run through one array: the first
//! [`CLASSES`] batches are their ends, so a batch goes in and out without a case for first or last. An empty batch leaves
//! at once and is used again: there are never more of them than calls, however long the first call waits.
//!
//! Which calls an expired batch has is not noted: [`Tickets`](super::tickets::Tickets) finds them by one pass over all
//! tickets, for all batches that have expired by then.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Distinct timeouts with a ring of their own.
const CLASSES: usize = 8;
/// In place of the next one in a ring: its clock does not run yet.
const OPEN: u32 = u32::MAX;
/// In place of the next one in a ring: it is in the sorted map, if it has a deadline.
const SORTED: u32 = u32::MAX - 1;
/// No batch.
const NONE: u32 = u32::MAX;
/// A longer timeout is none: a century.
const FOREVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

struct Batch {
    timeout: Duration,
    /// `None` until the clock of its calls starts; for ever, when the timeout is none.
    deadline: Option<Instant>,
    /// Calls that are not over.
    live: u32,
    previous: u32,
    next: u32,
}

/// See the module.
pub(super) struct Deadlines {
    batches: Vec<Batch>,
    /// Rings that have been in use.
    rings: usize,
    free: Vec<u32>,
    /// The batch that the last call has joined; most calls have the same timeout.
    latest: u32,
    /// Those whose clocks do not run yet.
    open: Vec<u32>,
    sorted: BTreeSet<(Instant, u32)>,
}

impl Default for Deadlines {
    fn default() -> Self {
        let end = |end| Batch { timeout: Duration::ZERO, deadline: None, live: 0, previous: end, next: end };
        Self {
            batches: (0..CLASSES as u32).map(end).collect(),
            rings: 0,
            free: Vec::new(),
            latest: NONE,
            open: Vec::new(),
            sorted: BTreeSet::new(),
        }
    }
}

impl Deadlines {
    /// The batch of a call that begins. Its clock starts at the next [`stamp`](Self::stamp). [`Duration::MAX`] is no
    /// timeout.
    #[inline(always)]
    pub fn join(&mut self, timeout: Duration) -> u32 {
        match self.batches.get_mut(self.latest as usize) {
            Some(batch) if batch.timeout == timeout => {
                batch.live += 1;
                self.latest
            }
            _ => self.join_another(timeout),
        }
    }

    #[cold]
    #[inline(never)]
    fn join_another(&mut self, timeout: Duration) -> u32 {
        // Of many distinct timeouts some get several batches: no harm.
        let mut known = self.open.iter().rev().take(CLASSES).copied();
        let known = known.find(|batch| self.batches[*batch as usize].timeout == timeout);
        let batch = known.unwrap_or_else(|| {
            let batch = Batch { timeout, deadline: None, live: 0, previous: NONE, next: OPEN };
            let at = self.free.pop().unwrap_or(self.batches.len() as u32);
            match self.batches.get_mut(at as usize) {
                Some(place) => *place = batch,
                None => self.batches.push(batch),
            }
            self.open.push(at);
            at
        });
        self.batches[batch as usize].live += 1;
        self.latest = batch;
        batch
    }

    /// A call of this batch is over.
    #[inline(always)]
    pub fn leave(&mut self, batch: u32) {
        let place = &mut self.batches[batch as usize];
        place.live -= 1;
        if place.live == u32::from(planted!(DeadlineForgotten)) {
            self.leave_empty(batch);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_empty(&mut self, batch: u32) {
        let Batch { deadline, previous, next, .. } = self.batches[batch as usize];
        match next {
            // Others may join it, and the next stamp looks at it.
            OPEN => return,
            SORTED => {
                deadline.map(|deadline| self.sorted.remove(&(deadline, batch)));
            }
            _ => {
                self.batches[previous as usize].next = next;
                self.batches[next as usize].previous = previous;
            }
        }
        self.free.push(batch);
    }

    /// True when [`stamp`](Self::stamp) has something to do.
    #[inline]
    pub fn has_unstamped(&self) -> bool {
        !self.open.is_empty()
    }

    /// Starts the clocks of the calls that began since the last time.
    pub fn stamp(&mut self, now: Instant) {
        self.latest = NONE;
        while let Some(at) = self.open.pop() {
            let Batch { timeout, live, .. } = self.batches[at as usize];
            if live == 0 {
                self.free.push(at);
                continue;
            }
            let timeout = if planted!(DeadlineEarly) { timeout.mul_f64(0.9) } else { timeout };
            let deadline = if timeout < FOREVER { now.checked_add(timeout) } else { None };
            let (previous, next) = match self.ring(timeout) {
                Some(end) => {
                    let last = std::mem::replace(&mut self.batches[end as usize].previous, at);
                    self.batches[last as usize].next = at;
                    (last, end)
                }
                None => {
                    self.sorted.extend(deadline.map(|deadline| (deadline, at)));
                    (NONE, SORTED)
                }
            };
            self.batches[at as usize] = Batch { timeout, deadline, live, previous, next };
        }
    }

    /// The end of the ring of `timeout`; none when all rings are in use for others.
    fn ring(&mut self, timeout: Duration) -> Option<u32> {
        let known = self.batches[..self.rings].iter().position(|end| end.timeout == timeout);
        let unused = || (0..CLASSES).find(|end| self.batches[*end].next == *end as u32);
        let end = known.or_else(unused)?;
        self.rings = self.rings.max(end + 1);
        self.batches[end].timeout = timeout;
        Some(end as u32)
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        // The end of an empty ring is its own first, and has no deadline.
        let first = |end: &Batch| self.batches[end.next as usize].deadline;
        let firsts = self.batches[..self.rings].iter().filter_map(first);
        firsts.chain(self.sorted.first().map(|(deadline, _)| *deadline)).min()
    }

    /// The deadline of a batch and its timeout, when it has passed.
    pub fn expired(&self, batch: u32, now: Instant) -> Option<(Instant, Duration)> {
        let Batch { deadline, timeout, .. } = self.batches[batch as usize];
        deadline.filter(|deadline| *deadline <= now).map(|deadline| (deadline, timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        // H36: the same expiries as a list of all calls, whatever the number of distinct timeouts, for calls that leave
        // before and after their clocks start.
        #[test]
        fn expiries_are_those_of_a_list(
            steps in proptest::collection::vec((0u8..6, 1u64..14, 0u64..20), 1..200),
        ) {
            let mut now = Instant::now();
            let mut deadlines = Deadlines::default();
            // Deadline, once its clock runs; timeout; batch.
            let mut model: Vec<(Option<Instant>, Duration, u32)> = Vec::new();
            for (action, timeout, advance) in steps {
                now += Duration::from_millis(advance);
                match action {
                    0..3 => {
                        let timeout = Duration::from_millis(timeout * 7);
                        model.push((None, timeout, deadlines.join(timeout)));
                    }
                    3 if !model.is_empty() => {
                        let (_, _, batch) = model.remove(advance as usize % model.len());
                        deadlines.leave(batch);
                    }
                    4 => {
                        deadlines.stamp(now);
                        for (deadline, timeout, _) in &mut model {
                            deadline.get_or_insert(now + *timeout);
                        }
                    }
                    _ => {
                        let expired = |deadline: Option<Instant>| deadline.filter(|deadline| *deadline <= now);
                        for (deadline, timeout, batch) in &model {
                            let expected = expired(*deadline).map(|deadline| (deadline, *timeout));
                            proptest::prop_assert_eq!(deadlines.expired(*batch, now), expected);
                        }
                        for (_, _, batch) in model.extract_if(.., |(deadline, _, _)| expired(*deadline).is_some()) {
                            deadlines.leave(batch);
                        }
                    }
                }
                proptest::prop_assert_eq!(deadlines.next(), model.iter().filter_map(|(deadline, _, _)| *deadline).min());
                let unstamped = model.iter().any(|(deadline, _, _)| deadline.is_none());
                proptest::prop_assert!(deadlines.has_unstamped() || !unstamped);
                let used = deadlines.batches.len() - CLASSES - deadlines.free.len();
                proptest::prop_assert!(used <= model.len() + deadlines.open.len());
            }
        }
    }

    #[test]
    fn a_call_that_waits_long_keeps_no_others() {
        let mut now = Instant::now();
        let mut deadlines = Deadlines::default();
        let first = deadlines.join(Duration::from_secs(5));
        deadlines.stamp(now);
        let first_deadline = deadlines.next();
        for _ in 0..1000 {
            now += Duration::from_micros(50);
            let batch = deadlines.join(Duration::from_secs(5));
            deadlines.stamp(now);
            deadlines.leave(batch);
        }
        assert_eq!(deadlines.batches.len(), CLASSES + 2);
        assert_eq!(deadlines.next(), first_deadline);
        deadlines.leave(first);
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn a_timeout_that_no_clock_can_add_is_none() {
        let mut deadlines = Deadlines::default();
        let batch = deadlines.join(Duration::MAX);
        deadlines.stamp(Instant::now());
        assert_eq!(deadlines.next(), None);
        deadlines.leave(batch);
    }
}
