//! The commands of one connection, in wire order, and their bytes: what is queued, sent, and awaits its reply.
//!
//! A queue entry is one frame; its bytes are a range of the log. Three offsets divide the log:
//!
//! ```text
//!   answered        accepted            submitted            end
//!  ────┬──────────────┬───────────────────┬───────────────────┬──▶ log offset
//!      │ taken by the │ given to the      │ queued: may still │
//!      │ kernel       │ engine, no word   │ be cancelled or   │
//!      │              │ yet               │ moved             │
//! ```
//! Entries stay in order whatever happens to their callers (SYS-006): a command that was given to the engine keeps
//! its place and its reply is dropped; one that was not leaves a *gap* that sends skip. The pipeline belongs to the
//! pool slot, not to one socket: when a socket is gone, what the kernel took from it is answered with an error, and
//! what it never saw goes out on the next socket (A-64).

use crate::buf::{Log, Transmit};
use crate::error::Delivery;
use crate::id::TicketId;
use std::collections::VecDeque;

/// What one send carries at most; a single larger chunk goes alone.
pub(super) const SEND_MAX: u64 = 1 << 20;

struct Entry {
    /// Whose reply it is; `None` when the caller is gone.
    ticket: Option<TicketId>,
    /// Log offset after its last byte. It begins where the entry before it ends.
    end: u64,
    /// It was cancelled before the engine got it: it is a gap in the log.
    is_gap: bool,
}

/// See the module.
pub struct Pipeline {
    log: Log,
    entries: VecDeque<Entry>,
    /// Number of the first entry; numbers never repeat.
    first: u64,
    /// Where the first entry begins.
    answered: u64,
    accepted: u64,
    submitted: u64,
    /// Gaps that lie in `submitted..end`, in order.
    gaps: VecDeque<(u64, u64)>,
    /// The ranges of the outstanding send, in order.
    sending: VecDeque<(u64, u64)>,
    /// Entries that are not gaps.
    live: usize,
}

impl Pipeline {
    pub fn new(write_buffer: usize) -> Self {
        Self {
            log: Log::new(write_buffer),
            entries: VecDeque::new(),
            first: 0,
            answered: 0,
            accepted: 0,
            submitted: 0,
            gaps: VecDeque::new(),
            sending: VecDeque::new(),
            live: 0,
        }
    }

    /// Commands that are queued or await their reply.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Bytes of those commands.
    pub fn bytes(&self) -> u64 {
        self.log.len()
    }

    /// Appends one frame, written by `encode`, and tells its number.
    pub fn push(&mut self, ticket: TicketId, encode: impl FnOnce(&mut Log)) -> u64 {
        encode(&mut self.log);
        self.entries.push_back(Entry { ticket: Some(ticket), end: self.log.end(), is_gap: false });
        self.live += 1;
        self.first + self.entries.len() as u64 - 1
    }

    fn start_of(&self, index: usize) -> u64 {
        if index == 0 { self.answered } else { self.entries[index - 1].end }
    }

    /// How far entry `number` has come.
    pub fn progress(&self, number: u64) -> Progress {
        let Some(index) = self.index_of(number) else { return Progress::Taken };
        let (start, end) = (self.start_of(index), self.entries[index].end);
        if start >= self.submitted {
            Progress::Queued
        } else if end <= self.accepted {
            Progress::Taken
        } else {
            Progress::Submitted
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (index < self.entries.len()).then_some(index)
    }

    /// The caller of entry `number` is gone. Queued, it is removed and never sent; otherwise it keeps its place.
    pub fn cancel(&mut self, number: u64) {
        let Some(index) = self.index_of(number) else { return };
        let range = (self.start_of(index), self.entries[index].end);
        self.entries[index].ticket = None;
        if range.0 < self.submitted || self.entries[index].is_gap {
            return;
        }
        self.entries[index].is_gap = true;
        self.live -= 1;
        let at = self.gaps.partition_point(|gap| gap.0 < range.0);
        self.gaps.insert(at, range);
        self.drop_answered_gaps();
    }

    /// True when there is something to give to the engine and no send is outstanding.
    pub fn has_transmit(&self) -> bool {
        self.sending.is_empty() && self.submitted < self.log.end() && !self.only_gaps_are_left()
    }

    fn only_gaps_are_left(&self) -> bool {
        let mut at = self.submitted;
        for gap in &self.gaps {
            if gap.0 != at {
                return false;
            }
            at = gap.1;
        }
        at == self.log.end()
    }

    /// The next send: everything queued, without gaps, up to [`SEND_MAX`].
    pub fn transmit(&mut self) -> Transmit {
        debug_assert!(self.sending.is_empty(), "one send at a time");
        let mut out = Transmit::new();
        let mut room = SEND_MAX;
        while room > 0 && self.submitted < self.log.end() {
            let from = self.submitted;
            let mut to = self.log.end();
            if let Some(gap) = self.gaps.front().copied() {
                if gap.0 == from {
                    self.gaps.pop_front();
                    self.submitted = gap.1;
                    continue;
                }
                to = gap.0;
            }
            to = to.min(from + room);
            self.log.slices(from, to, &mut out);
            self.sending.push_back((from, to));
            self.submitted = to;
            room -= to - from;
        }
        out
    }

    /// The kernel has taken `bytes` of the outstanding send, which is over.
    pub fn handle_sent(&mut self, bytes: usize) {
        let mut left = bytes as u64;
        for (from, to) in self.sending.drain(..) {
            let taken = left.min(to - from);
            if taken > 0 {
                self.accepted = from + taken;
            }
            left -= taken;
        }
        self.release();
    }

    /// True while a send is outstanding.
    pub fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Takes the entry whose reply has arrived: `Some(None)` when its caller is gone, `None` when no reply is owed.
    pub fn pop(&mut self) -> Option<Option<TicketId>> {
        self.drop_answered_gaps();
        let front = self.entries.front()?;
        if self.answered >= self.submitted {
            return None;
        }
        let (ticket, end) = (front.ticket, front.end);
        self.entries.pop_front();
        self.first += 1;
        self.answered = end;
        self.live -= 1;
        self.release();
        Some(ticket)
    }

    /// True when a reply is owed for something that was given to the engine.
    pub fn owes_reply(&self) -> bool {
        self.live > 0 && self.answered < self.submitted
    }

    /// Entries at the front that are gaps have no reply to wait for.
    fn drop_answered_gaps(&mut self) {
        while let Some(front) = self.entries.front() {
            if !front.is_gap {
                break;
            }
            self.answered = front.end;
            if self.gaps.front().is_some_and(|gap| gap.1 <= self.answered) {
                self.gaps.pop_front();
            }
            self.entries.pop_front();
            self.first += 1;
        }
        self.submitted = self.submitted.max(self.answered);
        self.release();
    }

    /// A byte may go when its command is answered *and* the kernel is done with it.
    fn release(&mut self) {
        let unsent = self.sending.front().map_or(self.submitted, |range| range.0);
        self.log.release(self.answered.min(unsent));
    }

    /// The socket is gone and its last send is accounted for. What it had accepted is taken out and told to `ended`
    /// with its delivery; the rest is ready to go out on the next socket.
    pub fn handle_closed(&mut self, mut ended: impl FnMut(TicketId, Delivery)) {
        debug_assert!(self.sending.is_empty(), "the engine tells of a send before it tells of the close");
        while let Some(front) = self.entries.front() {
            if self.answered >= self.accepted && !front.is_gap {
                break;
            }
            let delivery = if front.end <= self.accepted { Delivery::MaybeExecuted } else { Delivery::NotExecuted };
            if !front.is_gap {
                self.live -= 1;
                if let Some(ticket) = front.ticket {
                    ended(ticket, delivery);
                }
            }
            self.answered = front.end;
            self.entries.pop_front();
            self.first += 1;
        }
        // What is left was not seen by the kernel. Callers that left while the engine had their bytes need no next try.
        self.accepted = self.answered;
        self.submitted = self.answered;
        self.gaps.clear();
        let mut start = self.answered;
        for entry in &mut self.entries {
            if entry.ticket.is_none() && !entry.is_gap {
                entry.is_gap = true;
                self.live -= 1;
            }
            if entry.is_gap {
                self.gaps.push_back((start, entry.end));
            }
            start = entry.end;
        }
        self.drop_answered_gaps();
    }

    /// Takes out everything: no connection will carry it.
    pub fn clear(&mut self, mut ended: impl FnMut(TicketId)) {
        debug_assert!(self.sending.is_empty());
        self.first += self.entries.len() as u64;
        for entry in self.entries.drain(..) {
            if let Some(ticket) = entry.ticket {
                ended(ticket);
            }
        }
        let end = self.log.end();
        (self.answered, self.accepted, self.submitted, self.live) = (end, end, end, 0);
        self.gaps.clear();
        self.log.release(end);
    }
}

/// How far a command's bytes have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The engine has not got them.
    Queued,
    /// The engine has them, or a part; the kernel has not taken the last byte, as far as is known.
    Submitted,
    /// The kernel has taken all of them.
    Taken,
}
