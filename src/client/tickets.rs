//! Callers' places for their replies: a slab whose entries are used again, with the deadlines threaded through it.
//!
//! Deadlines: commands with the same timeout expire in the order in which they began, so each distinct timeout has a
//! list of its own, linked through the tickets: constant time in and out, nothing left behind, 4 ns per command where
//! heaps take 37 to 190 (H36). More distinct timeouts than [`CLASSES`] share one sorted set.
//!
//! Invariant: a ticket is in exactly one list (or in the set) while it has a timeout and no outcome.

use crate::buf::Payload;
use crate::error::Error;
use crate::id::TicketId;
use std::collections::BTreeSet;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Distinct timeouts with a list of their own.
const CLASSES: usize = 8;
const NONE: u32 = u32::MAX;

/// Where a call is. Two words, so that it travels in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In the waiting line; not encoded.
    Waiting,
    /// It may enter this connection, where a place is reserved. Its turn says where it stood in line.
    Granted {
        connection: u16,
        turn: u64,
    },
    /// Its turn came, and nobody polled it: its place was given away. It may enter, or stand in line again, when it is
    /// polled.
    Passed {
        turn: u64,
    },
    /// Encoded: entry `number` of a connection's pipeline.
    Entered {
        connection: u16,
        number: u64,
    },
    /// It is over; its outcome waits.
    Done,
    Free,
}

/// What came of a call.
pub(super) type Outcome = Result<Payload, Error>;

struct Ticket {
    generation: u32,
    place: Place,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    timeout: Option<Duration>,
    /// `None` until the clock of the call starts.
    deadline: Option<Instant>,
    /// Which list: [`OTHERS`] is the sorted set, [`NO_LIST`] none.
    class: u8,
    previous: u32,
    next: u32,
}

const OTHERS: u8 = CLASSES as u8;
const NO_LIST: u8 = u8::MAX;

/// The calls with one timeout, in the order in which they began. Those whose clock does not run yet are at the end.
#[derive(Clone, Copy)]
struct Class {
    timeout: Duration,
    first: u32,
    last: u32,
    unstamped: u32,
}

#[derive(Default)]
pub(super) struct Tickets {
    entries: Vec<Ticket>,
    free: Vec<u32>,
    classes: [Option<Class>; CLASSES],
    /// The list that was used last; most calls have the same timeout.
    latest: usize,
    others: BTreeSet<(Instant, u32)>,
    others_unstamped: Vec<TicketId>,
    /// Calls have begun since the driver last read the clock.
    any_unstamped: bool,
    live: usize,
}

impl Tickets {
    pub fn new() -> Self {
        Self::default()
    }

    /// Tickets that are not free.
    pub fn live(&self) -> usize {
        self.live
    }

    /// The ticket that [`add`](Self::add) will give.
    #[inline]
    pub fn next(&mut self) -> TicketId {
        let index = match self.free.last() {
            Some(index) => *index,
            None => self.grow(),
        };
        TicketId { index, generation: self.entries[index as usize].generation }
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let index = self.entries.len() as u32;
        self.entries.push(Ticket {
            generation: 0,
            place: Place::Free,
            outcome: None,
            waker: None,
            timeout: None,
            deadline: None,
            class: NO_LIST,
            previous: NONE,
            next: NONE,
        });
        self.free.push(index);
        index
    }

    /// The next ticket, for a call that waits in line.
    pub fn add_waiting(&mut self, timeout: Option<Duration>, waker: &Waker) -> TicketId {
        let id = self.add(timeout, waker);
        self.entries[id.index as usize].place = Place::Waiting;
        id
    }

    /// The next ticket, for a call that has entered a connection. (Its place is made here, not passed: what is written
    /// in parts and copied whole makes the processor wait.)
    #[inline]
    pub fn add_entered(&mut self, connection: u16, number: u64, timeout: Option<Duration>, waker: &Waker) {
        let id = self.add(timeout, waker);
        self.entries[id.index as usize].place = Place::Entered { connection, number };
    }

    #[inline]
    fn add(&mut self, timeout: Option<Duration>, waker: &Waker) -> TicketId {
        let id = self.next();
        self.free.pop();
        self.live += 1;
        let ticket = &mut self.entries[id.index as usize];
        ticket.timeout = timeout;
        ticket.waker = Some(waker.clone());
        if let Some(timeout) = timeout {
            self.link(id, timeout);
        }
        id
    }

    #[inline]
    fn entry(&mut self, id: TicketId) -> Option<&mut Ticket> {
        self.entries.get_mut(id.index as usize).filter(|ticket| ticket.generation == id.generation)
    }

    #[inline]
    pub fn place(&mut self, id: TicketId) -> Option<&mut Place> {
        self.entry(id).map(|ticket| &mut ticket.place)
    }

    pub fn timeout(&mut self, id: TicketId) -> Option<Duration> {
        self.entry(id)?.timeout
    }

    /// Stores the waker; gives back the one that it replaces, to be dropped when nothing is borrowed (H15).
    #[must_use]
    #[inline]
    pub fn set_waker(&mut self, id: TicketId, waker: &Waker) -> Option<Waker> {
        let ticket = self.entry(id)?;
        match &ticket.waker {
            Some(old) if old.will_wake(waker) => None,
            _ => ticket.waker.replace(waker.clone()),
        }
    }

    pub fn take_waker(&mut self, id: TicketId) -> Option<Waker> {
        self.entry(id)?.waker.take()
    }

    /// Ends a call; its waker, if any, goes to `wakers`. False when it is over already.
    #[inline]
    pub fn finish(&mut self, id: TicketId, outcome: Outcome, wakers: &mut Vec<Waker>) -> bool {
        let Some(ticket) = self.entry(id) else { return false };
        if matches!(ticket.place, Place::Done | Place::Free) {
            return false;
        }
        ticket.place = Place::Done;
        ticket.outcome = Some(outcome);
        if let Some(waker) = ticket.waker.take() {
            wakers.push(waker);
        }
        self.unlink(id.index);
        true
    }

    /// The outcome of a call that is over; its ticket is free again. It is in no list and has no waker any more.
    #[inline]
    pub fn take(&mut self, id: TicketId) -> Option<Outcome> {
        let ticket = self.entry(id)?;
        let outcome = ticket.outcome.take()?;
        ticket.place = Place::Free;
        ticket.generation = ticket.generation.wrapping_add(1);
        self.free.push(id.index);
        self.live -= 1;
        Some(outcome)
    }

    /// Frees a ticket and gives its contents back, to be dropped when nothing is borrowed.
    #[inline]
    pub fn remove(&mut self, id: TicketId) -> Option<(Place, Option<Outcome>, Option<Waker>)> {
        self.entry(id)?;
        self.unlink(id.index);
        let ticket = &mut self.entries[id.index as usize];
        ticket.generation = ticket.generation.wrapping_add(1);
        let place = std::mem::replace(&mut ticket.place, Place::Free);
        let (outcome, waker) = (ticket.outcome.take(), ticket.waker.take());
        self.free.push(id.index);
        self.live -= 1;
        Some((place, outcome, waker))
    }

    /// True when [`stamp`](Self::stamp) has something to do.
    #[inline]
    pub fn has_unstamped(&self) -> bool {
        self.any_unstamped
    }

    /// Starts the clocks of the calls that began since the last time.
    pub fn stamp(&mut self, now: Instant) {
        self.any_unstamped = false;
        for class in self.classes.iter_mut().flatten() {
            let mut index = std::mem::replace(&mut class.unstamped, NONE);
            // A timeout that the clock cannot add is as good as none.
            let deadline = now.checked_add(class.timeout);
            while let Some(ticket) = self.entries.get_mut(index as usize) {
                ticket.deadline = deadline;
                index = ticket.next;
            }
        }
        for id in std::mem::take(&mut self.others_unstamped) {
            if let Some(ticket) = self.entry(id)
                && ticket.class == OTHERS
                && let Some(deadline) = ticket.timeout.and_then(|timeout| now.checked_add(timeout))
            {
                ticket.deadline = Some(deadline);
                self.others.insert((deadline, id.index));
            }
        }
    }

    /// Puts a call at the end of the list of its timeout.
    #[inline]
    fn link(&mut self, id: TicketId, timeout: Duration) {
        self.any_unstamped = true;
        if self.classes[self.latest].is_none_or(|class| class.timeout != timeout) {
            let known =
                self.classes.iter().position(|class| class.is_some_and(|class| class.timeout == timeout));
            let unused =
                || self.classes.iter().position(|class| class.is_none_or(|class| class.first == NONE));
            let Some(slot) = known.or_else(unused) else {
                self.entries[id.index as usize].class = OTHERS;
                return self.others_unstamped.push(id);
            };
            if known.is_none() {
                self.classes[slot] = Some(Class { timeout, first: NONE, last: NONE, unstamped: NONE });
            }
            self.latest = slot;
        }
        let Some(class) = &mut self.classes[self.latest] else { return };
        let last = std::mem::replace(&mut class.last, id.index);
        if class.unstamped == NONE {
            class.unstamped = id.index;
        }
        match self.entries.get_mut(last as usize) {
            None => class.first = id.index,
            Some(last) => last.next = id.index,
        }
        let ticket = &mut self.entries[id.index as usize];
        (ticket.class, ticket.previous, ticket.next) = (self.latest as u8, last, NONE);
    }

    #[inline]
    fn unlink(&mut self, index: u32) {
        let ticket = &mut self.entries[index as usize];
        let slot = std::mem::replace(&mut ticket.class, NO_LIST);
        if slot == NO_LIST {
            return;
        }
        let deadline = ticket.deadline.take();
        let (previous, next) = (ticket.previous, ticket.next);
        let Some(Some(class)) = self.classes.get_mut(usize::from(slot)) else {
            if let Some(deadline) = deadline {
                self.others.remove(&(deadline, index));
            }
            return;
        };
        if class.unstamped == index {
            class.unstamped = next;
        }
        match self.entries.get_mut(previous as usize) {
            None => class.first = next,
            Some(previous) => previous.next = next,
        }
        match self.entries.get_mut(next as usize) {
            None => class.last = previous,
            Some(next) => next.previous = previous,
        }
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<Instant> {
        let listed = self.firsts().filter_map(|index| self.entries[index as usize].deadline);
        listed.chain(self.others.first().map(|(deadline, _)| *deadline)).min()
    }

    fn firsts(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().flatten().map(|class| class.first).filter(|first| *first != NONE)
    }

    /// A ticket whose deadline has passed, if there is one. The caller finishes or removes it.
    pub fn expired(&self, now: Instant) -> Option<TicketId> {
        let index = self
            .firsts()
            .chain(self.others.first().map(|(_, index)| *index))
            .find(|index| self.entries[*index as usize].deadline.is_some_and(|deadline| deadline <= now))?;
        Some(TicketId { index, generation: self.entries[index as usize].generation })
    }

    /// All tickets that have no outcome yet.
    pub fn pending(&self) -> Vec<TicketId> {
        let pending =
            self.entries.iter().enumerate().filter(|(_, t)| !matches!(t.place, Place::Done | Place::Free));
        pending.map(|(index, t)| TicketId { index: index as u32, generation: t.generation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Outcome {
        Err(Error::Closed(crate::Delivery::NotExecuted))
    }

    #[test]
    fn an_old_id_finds_nothing() {
        let mut tickets = Tickets::new();
        let old = tickets.add_waiting(None, Waker::noop());
        assert!(tickets.remove(old).is_some());
        let new = tickets.add_waiting(None, Waker::noop());
        assert_eq!(old.index, new.index);
        assert!(tickets.place(old).is_none());
        assert!(tickets.remove(old).is_none());
        assert!(!tickets.finish(old, failed(), &mut Vec::new()));
        assert_eq!(tickets.live(), 1);
    }

    proptest::proptest! {
        // H36: the same expiries as a sorted list, whatever the number of distinct timeouts.
        #[test]
        fn expiries_are_those_of_a_sorted_list(
            steps in proptest::collection::vec((0u8..4, 1u64..14, 0u64..20), 1..200),
        ) {
            let start = Instant::now();
            let mut now = start;
            let mut tickets = Tickets::new();
            let mut model: Vec<(Instant, TicketId)> = Vec::new();
            for (action, timeout, advance) in steps {
                now += Duration::from_millis(advance);
                match action {
                    0 | 1 => {
                        let timeout = Duration::from_millis(timeout * 7);
                        let id = tickets.add_waiting(Some(timeout), Waker::noop());
                        tickets.stamp(now);
                        model.push((now + timeout, id));
                    }
                    2 if !model.is_empty() => {
                        let (_, id) = model.remove(advance as usize % model.len());
                        tickets.finish(id, failed(), &mut Vec::new());
                        tickets.remove(id);
                    }
                    _ => {
                        while let Some(id) = tickets.expired(now) {
                            let at = model.iter().position(|(_, other)| *other == id).expect("known");
                            let (deadline, _) = model.remove(at);
                            proptest::prop_assert!(deadline <= now);
                            tickets.finish(id, failed(), &mut Vec::new());
                            tickets.remove(id);
                        }
                        proptest::prop_assert!(model.iter().all(|(deadline, _)| *deadline > now));
                    }
                }
                proptest::prop_assert_eq!(tickets.next_deadline(), model.iter().map(|(d, _)| *d).min());
                proptest::prop_assert_eq!(tickets.live(), model.len());
            }
        }
    }
}
