//! Callers' places for their replies: a slab whose entries are used again. [`Deadlines`] run beside it.
//!
//! Invariant: a ticket has a deadline at most while it has no outcome.

use super::deadlines::Deadlines;
use crate::buf::Payload;
use crate::error::Error;
use crate::id::TicketId;
use std::task::Waker;
use std::time::{Duration, Instant};

/// No ticket.
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
    /// The next one that is free, while this one is; the batch of its deadline, while it has no outcome.
    link: u32,
    place: Place,
    /// What came of the call, one of these. (Apart, since a payload alone travels in registers.)
    reply: Option<Payload>,
    error: Option<Box<Error>>,
    waker: Option<Waker>,
}

// A line of the cache each: replies find their tickets in any order.
const _: () = assert!(size_of::<Ticket>() == 64);

pub(super) struct Tickets {
    entries: Vec<Ticket>,
    /// The first free one.
    free: u32,
    deadlines: Deadlines,
    /// No earlier pass for calls that have expired.
    rests_until: Option<Instant>,
    live: usize,
}

impl Tickets {
    /// Between two passes over all tickets, for each ticket above a thousand, which takes a pass 2 to 5 ns. So late may a
    /// call expire: with ten thousand tickets a millisecond.
    const REST: Duration = Duration::from_nanos(100);

    pub fn new() -> Self {
        Self { entries: Vec::new(), free: NONE, deadlines: Deadlines::default(), rests_until: None, live: 0 }
    }

    /// Tickets that are not free.
    pub fn live(&self) -> usize {
        self.live
    }

    /// The ticket that the next call will get.
    #[inline]
    pub fn next(&mut self) -> TicketId {
        if self.free == NONE {
            self.grow();
        }
        TicketId { index: self.free, generation: self.entries[self.free as usize].generation }
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.entries.len() as u32;
        self.entries.push(Ticket {
            generation: 0,
            link: NONE,
            place: Place::Free,
            reply: None,
            error: None,
            waker: None,
        });
    }

    /// The next ticket, for a call that waits in line.
    pub fn add_waiting(&mut self, timeout: Duration, waker: Waker) -> TicketId {
        let id = self.next();
        self.add(id, Place::Waiting, timeout, waker);
        id
    }

    /// The [`next`](Self::next) ticket, for a call that has entered a connection.
    #[inline(always)]
    pub fn add_entered(
        &mut self,
        id: TicketId,
        connection: u16,
        number: u64,
        timeout: Duration,
        waker: Waker,
    ) {
        self.add(id, Place::Entered { connection, number }, timeout, waker);
    }

    /// (Inlined, so that the place is written where it stays: what is written in parts and copied whole makes the
    /// processor wait.)
    #[inline(always)]
    fn add(&mut self, id: TicketId, place: Place, timeout: Duration, waker: Waker) {
        self.live += 1;
        let ticket = &mut self.entries[id.index as usize];
        self.free = std::mem::replace(&mut ticket.link, self.deadlines.join(timeout));
        ticket.place = place;
        // A free ticket has no waker: nothing is dropped.
        std::mem::forget(ticket.waker.replace(waker));
    }

    #[inline]
    fn release(&mut self, index: u32) {
        let ticket = &mut self.entries[index as usize];
        ticket.generation = ticket.generation.wrapping_add(u32::from(!planted!(TicketReused)));
        ticket.place = Place::Free;
        ticket.link = self.free;
        self.free = index;
        self.live -= 1;
    }

    #[inline]
    fn entry(&mut self, id: TicketId) -> Option<&mut Ticket> {
        self.entries.get_mut(id.index as usize).filter(|ticket| ticket.generation == id.generation)
    }

    #[inline]
    pub fn place(&mut self, id: TicketId) -> Option<&mut Place> {
        self.entry(id).map(|ticket| &mut ticket.place)
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

    /// Ends a call with its reply, as [`fail`](Self::fail) does with an error.
    #[inline(always)]
    pub fn reply(&mut self, id: TicketId, payload: impl FnOnce() -> Payload, wakers: &mut Vec<Waker>) {
        let Some(ticket) = self.entry(id) else { return };
        if matches!(ticket.place, Place::Done | Place::Free) {
            return;
        }
        ticket.place = Place::Done;
        // There is none yet: nothing is dropped.
        std::mem::forget(ticket.reply.replace(payload()));
        if let Some(waker) = ticket.waker.take()
            && !(planted!(WakeLost) && wakers.len() == 1)
        {
            wakers.push(waker);
        }
        let batch = ticket.link;
        self.deadlines.leave(batch);
    }

    /// Ends a call with an error; its waker, if any, goes to `wakers`. Nothing happens when it is over already.
    pub fn fail(&mut self, id: TicketId, error: Error, wakers: &mut Vec<Waker>) {
        let Some(ticket) = self.entry(id) else { return };
        if matches!(ticket.place, Place::Done | Place::Free) {
            return;
        }
        ticket.place = Place::Done;
        ticket.error = Some(Box::new(error));
        wakers.extend(ticket.waker.take());
        let batch = ticket.link;
        self.deadlines.leave(batch);
    }

    /// The reply of a call that has one; its ticket is free again. It has no deadline and no waker any more.
    #[inline(always)]
    pub fn take_reply(&mut self, id: TicketId) -> Option<Payload> {
        let reply = self.entry(id)?.reply.take()?;
        self.release(id.index);
        Some(reply)
    }

    /// The error of a call that failed; its ticket is free again.
    pub fn take_error(&mut self, id: TicketId) -> Option<Error> {
        let error = self.entry(id)?.error.take()?;
        self.release(id.index);
        Some(*error)
    }

    /// The outcome of a call that is over; its ticket is free again.
    pub fn take(&mut self, id: TicketId) -> Option<Outcome> {
        let reply = self.take_reply(id).map(Ok);
        reply.or_else(|| self.take_error(id).map(Err))
    }

    /// Frees a ticket and gives its contents back, to be dropped when nothing is borrowed.
    pub fn remove(&mut self, id: TicketId) -> Option<(Place, Option<Outcome>, Option<Waker>)> {
        let ticket = self.entry(id)?;
        let (place, batch, waker) = (ticket.place, ticket.link, ticket.waker.take());
        if let Some(outcome) = self.take(id) {
            return Some((place, Some(outcome), waker));
        }
        self.deadlines.leave(batch);
        self.release(id.index);
        Some((place, None, waker))
    }

    /// True when [`stamp`](Self::stamp) has something to do.
    #[inline]
    pub fn has_unstamped(&self) -> bool {
        self.deadlines.has_unstamped()
    }

    /// Starts the clocks of the calls that began since the last time.
    pub fn stamp(&mut self, now: Instant) {
        self.deadlines.stamp(now);
    }

    /// When the next call expires, or the rest after the last pass is over.
    pub fn next_deadline(&self) -> Option<Instant> {
        let deadline = self.deadlines.next().filter(|_| !planted!(TimerLost) || self.live < 3)?;
        Some(self.rests_until.map_or(deadline, |until| deadline.max(until)))
    }

    /// The calls whose deadline has passed, those first that began first, and their timeouts. The caller ends each. One
    /// pass over all tickets finds them, however many they are; the next follows after a rest, so that passes take a few
    /// per cent of the time when many calls expire one after the other.
    pub fn expired(&mut self, now: Instant) -> Vec<(TicketId, Duration)> {
        if self
            .next_deadline()
            .is_none_or(|deadline| deadline > now || planted!(DeadlineLate) && deadline == now)
        {
            return Vec::new();
        }
        self.rests_until = now.checked_add(Self::REST * (self.entries.len() as u32).saturating_sub(1000));
        let expired = self.without_outcome().filter_map(|(id, ticket)| {
            let (deadline, timeout) = self.deadlines.expired(ticket.link, now)?;
            let number = if let Place::Entered { number, .. } = ticket.place { number } else { u64::MAX };
            Some((deadline, number, id, timeout))
        });
        let mut expired: Vec<_> = expired.collect();
        // In the order of the pipeline, of which each becomes a gap.
        expired.sort_unstable_by_key(|(deadline, number, ..)| (*deadline, *number));
        expired.into_iter().map(|(_, _, id, timeout)| (id, timeout)).collect()
    }

    /// All tickets that have no outcome yet.
    pub fn pending(&self) -> Vec<TicketId> {
        self.without_outcome().map(|(id, _)| id).collect()
    }

    fn without_outcome(&self) -> impl Iterator<Item = (TicketId, &Ticket)> {
        let numbered = self.entries.iter().enumerate();
        numbered
            .filter(|(_, ticket)| !matches!(ticket.place, Place::Done | Place::Free))
            .map(|(index, ticket)| (TicketId { index: index as u32, generation: ticket.generation }, ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // H36: calls that expire one after the other are not looked for one by one, and none expires early, or late by more
    // than the rest.
    #[test]
    fn passes_over_many_tickets_are_few() {
        let (mut tickets, start) = (Tickets::new(), Instant::now());
        let timeout = Duration::from_secs(1);
        let began: Vec<Instant> = (0..10_000).map(|at| start + Duration::from_micros(at)).collect();
        for began in &began {
            tickets.add_waiting(timeout, Waker::noop().clone());
            tickets.stamp(*began);
        }
        let mut passes = 0;
        while let Some(now) = tickets.next_deadline() {
            passes += 1;
            let mut wakers = Vec::new();
            for (id, _) in tickets.expired(now) {
                let deadline = began[id.index as usize] + timeout;
                assert!(deadline <= now && now <= deadline + Duration::from_millis(1));
                tickets.fail(id, Error::Closed(crate::Delivery::NotExecuted), &mut wakers);
            }
        }
        assert!((10..=14).contains(&passes), "{passes} passes");
    }

    #[test]
    fn an_old_id_finds_nothing() {
        let mut tickets = Tickets::new();
        let old = tickets.add_waiting(Duration::MAX, Waker::noop().clone());
        assert!(tickets.remove(old).is_some());
        let new = tickets.add_waiting(Duration::MAX, Waker::noop().clone());
        assert_eq!(old.index, new.index);
        assert!(tickets.place(old).is_none());
        assert!(tickets.remove(old).is_none());
        tickets.fail(old, Error::Closed(crate::Delivery::NotExecuted), &mut Vec::new());
        assert!(tickets.take(new).is_none());
        assert_eq!(tickets.live(), 1);
    }
}
