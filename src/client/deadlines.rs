//! The deadlines of all calls, threaded through their tickets.
//!
//! Commands with the same timeout expire in the order in which they began, so each distinct timeout has a list of its
//! own: constant time in and out, nothing left behind, where heaps take 37 to 190 ns a command (H36). More distinct
//! timeouts than [`CLASSES`] share one sorted map.
//!
//! The lists are rings through one compact array: the first [`CLASSES`] links are their ends, the link of a ticket
//! stands behind them. So a link goes in and out without a case for first or last.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Distinct timeouts with a list of their own.
const CLASSES: usize = 8;
/// In no list.
const NONE: u32 = u32::MAX;
/// In the sorted map, or on its way there.
const OTHER: u32 = u32::MAX - 1;
/// A longer timeout is as good as none, and the clock can always add this one: a century.
const FOREVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    /// `None` until the clock of the call starts.
    deadline: Option<Instant>,
}

/// See the module.
pub(super) struct Deadlines {
    links: Vec<Link>,
    timeouts: [Option<Duration>; CLASSES],
    /// The list that was used last; most calls have the same timeout.
    latest: usize,
    others: BTreeMap<(Instant, u32), Duration>,
    /// Those whose clock does not run yet; their links know their positions.
    others_unstamped: Vec<(u32, Duration)>,
    /// Calls have begun since the last [`stamp`](Self::stamp).
    any_unstamped: bool,
}

impl Default for Deadlines {
    fn default() -> Self {
        let end = |slot| Link { previous: slot, next: slot, deadline: None };
        Self {
            links: (0..CLASSES as u32).map(end).collect(),
            timeouts: [None; CLASSES],
            latest: 0,
            others: BTreeMap::new(),
            others_unstamped: Vec::new(),
            any_unstamped: false,
        }
    }
}

fn node(ticket: u32) -> usize {
    ticket as usize + CLASSES
}

impl Deadlines {
    /// There is one more ticket.
    pub fn grow(&mut self) {
        self.links.push(Link { previous: NONE, next: NONE, deadline: None });
    }

    /// Adds a ticket that is in no list. Its clock starts at the next [`stamp`](Self::stamp).
    #[inline]
    pub fn insert(&mut self, ticket: u32, timeout: Duration) {
        self.any_unstamped = true;
        if self.timeouts[self.latest % CLASSES] != Some(timeout) && !self.select(timeout) {
            return self.insert_other(ticket, timeout);
        }
        let end = self.latest % CLASSES;
        let last = std::mem::replace(&mut self.links[end].previous, node(ticket) as u32);
        self.links[last as usize].next = node(ticket) as u32;
        self.links[node(ticket)] = Link { previous: last, next: end as u32, deadline: None };
    }

    /// Makes the list of `timeout` the latest; false when all lists are in use for others.
    #[cold]
    fn select(&mut self, timeout: Duration) -> bool {
        let known = self.timeouts.iter().position(|known| *known == Some(timeout));
        let unused = || (0..CLASSES).find(|end| self.links[*end].next == *end as u32);
        let Some(slot) = known.or_else(unused) else { return false };
        self.timeouts[slot] = Some(timeout);
        self.latest = slot;
        true
    }

    #[cold]
    fn insert_other(&mut self, ticket: u32, timeout: Duration) {
        let position = self.others_unstamped.len() as u32;
        self.others_unstamped.push((ticket, timeout));
        self.links[node(ticket)] = Link { previous: position, next: OTHER, deadline: None };
    }

    /// Takes a ticket out, if it is in.
    #[inline]
    pub fn remove(&mut self, ticket: u32) {
        let link = &mut self.links[node(ticket)];
        let Link { previous, next, .. } = *link;
        link.next = NONE;
        if next >= OTHER {
            if next == OTHER {
                self.remove_other(ticket);
            }
            return;
        }
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
    }

    #[cold]
    fn remove_other(&mut self, ticket: u32) {
        let link = self.links[node(ticket)];
        if let Some(deadline) = link.deadline {
            self.others.remove(&(deadline, ticket));
            return;
        }
        self.others_unstamped.swap_remove(link.previous as usize);
        if let Some((moved, _)) = self.others_unstamped.get(link.previous as usize) {
            self.links[node(*moved)].previous = link.previous;
        }
    }

    /// True when [`stamp`](Self::stamp) has something to do.
    #[inline]
    pub fn has_unstamped(&self) -> bool {
        self.any_unstamped
    }

    /// Starts the clocks of the calls that began since the last time.
    pub fn stamp(&mut self, now: Instant) {
        self.any_unstamped = false;
        let after = |timeout: Duration| now.checked_add(timeout.min(FOREVER));
        for (end, timeout) in self.timeouts.iter().enumerate() {
            let Some(deadline) = timeout.map(after) else { continue };
            // Those whose clock does not run yet are the last ones.
            let mut at = self.links[end].previous as usize;
            while at >= CLASSES && self.links[at].deadline.is_none() {
                self.links[at].deadline = deadline;
                at = self.links[at].previous as usize;
            }
        }
        for (ticket, timeout) in self.others_unstamped.drain(..) {
            let deadline = after(timeout);
            self.links[node(ticket)].deadline = deadline;
            self.others.extend(deadline.map(|deadline| ((deadline, ticket), timeout)));
        }
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        let listed = self.firsts().filter_map(|(ticket, _)| self.links[node(ticket)].deadline);
        listed.chain(self.others.first_key_value().map(|((deadline, _), _)| *deadline)).min()
    }

    /// A ticket whose deadline has passed and its timeout, if there is one. The caller removes it.
    pub fn expired(&self, now: Instant) -> Option<(u32, Duration)> {
        let other = self.others.first_key_value().map(|((_, ticket), timeout)| (*ticket, *timeout));
        self.firsts()
            .chain(other)
            .find(|(ticket, _)| self.links[node(*ticket)].deadline.is_some_and(|deadline| deadline <= now))
    }

    /// The first ticket of each list, and the list's timeout.
    fn firsts(&self) -> impl Iterator<Item = (u32, Duration)> {
        let first = |(end, timeout): (usize, &Option<Duration>)| {
            let ticket = self.links[end].next.checked_sub(CLASSES as u32)?;
            Some((ticket, (*timeout)?))
        };
        self.timeouts.iter().enumerate().filter_map(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        // H36: the same expiries as a sorted list, whatever the number of distinct timeouts, for calls that leave
        // before and after their clocks start.
        #[test]
        fn expiries_are_those_of_a_sorted_list(
            steps in proptest::collection::vec((0u8..6, 1u64..14, 0u64..20), 1..200),
        ) {
            let start = Instant::now();
            let mut now = start;
            let mut deadlines = Deadlines::default();
            let mut free: Vec<u32> = Vec::new();
            let mut tickets = 0;
            // Deadline, once its clock runs; timeout; ticket.
            let mut model: Vec<(Option<Instant>, Duration, u32)> = Vec::new();
            for (action, timeout, advance) in steps {
                now += Duration::from_millis(advance);
                match action {
                    0..3 => {
                        let timeout = Duration::from_millis(timeout * 7);
                        let ticket = free.pop().unwrap_or_else(|| {
                            deadlines.grow();
                            tickets += 1;
                            tickets - 1
                        });
                        deadlines.insert(ticket, timeout);
                        model.push((None, timeout, ticket));
                    }
                    3 if !model.is_empty() => {
                        let (_, _, ticket) = model.remove(advance as usize % model.len());
                        deadlines.remove(ticket);
                        // It is in no list any more: nothing happens.
                        deadlines.remove(ticket);
                        free.push(ticket);
                    }
                    4 => {
                        deadlines.stamp(now);
                        for (deadline, timeout, _) in &mut model {
                            deadline.get_or_insert(now + *timeout);
                        }
                    }
                    _ => {
                        while let Some((ticket, timeout)) = deadlines.expired(now) {
                            let at = model.iter().position(|(_, _, other)| *other == ticket).expect("known");
                            let (deadline, known, _) = model.remove(at);
                            proptest::prop_assert!(deadline.is_some_and(|deadline| deadline <= now));
                            proptest::prop_assert_eq!(timeout, known);
                            deadlines.remove(ticket);
                            free.push(ticket);
                        }
                        proptest::prop_assert!(model.iter().all(|(deadline, _, _)| deadline.is_none_or(|at| at > now)));
                    }
                }
                proptest::prop_assert_eq!(deadlines.next(), model.iter().filter_map(|(deadline, _, _)| *deadline).min());
                let unstamped = model.iter().any(|(deadline, _, _)| deadline.is_none());
                proptest::prop_assert!(deadlines.has_unstamped() || !unstamped);
            }
        }
    }

    #[test]
    fn a_timeout_that_no_clock_can_add_is_none() {
        let now = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grow();
        deadlines.insert(0, Duration::MAX);
        deadlines.stamp(now);
        assert_eq!(deadlines.expired(now + Duration::from_secs(3600 * 24 * 365 * 50)), None);
    }
}
