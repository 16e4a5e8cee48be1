//! What one connection still has to send, and what holds it back.
//!
//! **Problem.** A test withholds the reply to one command, or delays it, or ends the connection after it. A protocol
//! without request numbers allows only one order, so everything behind that reply must wait as well.
//!
//! **Idea.** Bytes that may go out now are `ready`. A [`Gate`] closes behind them; later replies collect behind the last
//! gate. When the first gate opens, its bytes become ready.
//!
//! **Invariant.** Replies leave in the order of their commands. Only a push, which belongs to no command, may pass a gate.

use crate::Hangup;
use std::collections::VecDeque;
use std::time::Instant;

/// Above this size an emptied buffer is given back, so that one large reply does not stay for ever.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What must happen before the bytes behind it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The test calls `release`.
    Release,
    /// The moment comes.
    At(Instant),
    /// Never: the connection ends here.
    End(Hangup),
}

struct Held {
    gate: Gate,
    bytes: Vec<u8>,
}

/// The outgoing bytes of one connection.
#[derive(Default)]
pub(crate) struct Outbox {
    ready: Vec<u8>,
    sent: usize,
    held: VecDeque<Held>,
}

impl Outbox {
    /// Where the next reply is appended.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        match self.held.back_mut() {
            Some(held) => &mut held.bytes,
            None => &mut self.ready,
        }
    }

    /// Closes a gate behind everything that was appended so far.
    pub(crate) fn close_gate(&mut self, gate: Gate) {
        self.held.push_back(Held { gate, bytes: Vec::new() });
    }

    /// Appends bytes that belong to no command; they pass every gate.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.ready.extend_from_slice(bytes);
    }

    /// Opens all gates that wait for a release; says how many.
    pub(crate) fn release(&mut self, now: Instant) -> usize {
        let mut opened = 0;
        for held in self.held.iter_mut().filter(|held| held.gate == Gate::Release) {
            held.gate = Gate::At(now);
            opened += 1;
        }
        opened
    }

    /// The number of replies that wait for a release.
    pub(crate) fn withheld(&self) -> usize {
        self.held.iter().filter(|held| held.gate == Gate::Release).count()
    }

    /// Makes ready what is due. Returns how the connection must end once `unsent` is empty.
    pub(crate) fn open_due(&mut self, now: Instant) -> Option<Hangup> {
        while let Some(held) = self.held.front_mut() {
            match held.gate {
                Gate::At(due) if due <= now => {
                    self.ready.append(&mut held.bytes);
                    self.held.pop_front();
                }
                Gate::End(hangup) => return Some(hangup),
                Gate::At(_) | Gate::Release => return None,
            }
        }
        None
    }

    /// The bytes that may be written now.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.ready[self.sent..]
    }

    /// The same, to be changed on their way.
    pub(crate) fn unsent_mut(&mut self) -> &mut [u8] {
        &mut self.ready[self.sent..]
    }

    /// The first `count` unsent bytes are with the kernel.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.ready.len(), "the kernel took more than it was given");
        if self.sent == self.ready.len() {
            self.sent = 0;
            if self.ready.capacity() > KEPT_BYTES_MAX { self.ready = Vec::new() } else { self.ready.clear() }
        } else if self.sent > KEPT_BYTES_MAX && self.sent > self.ready.len() / 2 {
            // Where more comes before all is sent, the sent part must not grow for ever.
            self.ready.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// When the next gate opens by itself.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.held.front()?.gate {
            Gate::At(due) => Some(due),
            Gate::Release | Gate::End(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn order_is_kept_behind_gates_and_pushes_pass() {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        outbox.tail().extend(b"1");
        outbox.close_gate(Gate::Release);
        outbox.tail().extend(b"2");
        outbox.close_gate(Gate::At(now + Duration::from_secs(1)));
        outbox.tail().extend(b"3");
        outbox.push(b"p");

        assert_eq!(outbox.open_due(now + Duration::from_secs(5)), None);
        assert_eq!(outbox.unsent(), b"1p");
        outbox.advance(2);
        assert_eq!(outbox.withheld(), 1);
        assert_eq!(outbox.release(now), 1);
        outbox.open_due(now);
        assert_eq!(outbox.unsent(), b"2");
        assert_eq!(outbox.next_deadline(), Some(now + Duration::from_secs(1)));
        outbox.open_due(now + Duration::from_secs(1));
        assert_eq!(outbox.unsent(), b"23");
    }

    #[test]
    fn an_end_is_reached_only_after_the_bytes_before_it() {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        outbox.close_gate(Gate::At(now));
        outbox.tail().extend(b"1");
        outbox.close_gate(Gate::End(Hangup::Reset));
        assert_eq!(outbox.open_due(now), Some(Hangup::Reset));
        assert_eq!(outbox.unsent(), b"1");
    }

    #[test]
    fn what_was_sent_does_not_pile_up() {
        let mut outbox = Outbox::default();
        let piece = [7; 64 * 1024];
        outbox.tail().extend_from_slice(&piece);
        for _ in 0..1000 {
            outbox.tail().extend_from_slice(&piece);
            outbox.advance(piece.len());
            assert_eq!(outbox.unsent(), piece);
        }
        assert!(outbox.ready.capacity() < 4 * KEPT_BYTES_MAX, "{}", outbox.ready.capacity());
    }
}
