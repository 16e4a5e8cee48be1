//! One direction of a connection: from one socket to the other, under its faults.
//!
//! **Idea.** What was read goes into an [`Outbox`]: a delay is a gate before it, the end of the source a gate behind it, so
//! order is kept whatever the faults are. Faults that count bytes count those that the receiver's kernel took.
//!
//! **Invariant.** It holds at most [`HELD_BYTES_MAX`]; beyond that its source waits.

use crate::Hangup;
use crate::faults::Faults;
use crate::outbox::{Gate, Outbox};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::time::Instant;

/// What one direction holds at most.
pub(crate) const HELD_BYTES_MAX: usize = 256 * 1024;
/// Pieces sent in one turn, so that a flow of single bytes lets others have theirs.
const WRITES_PER_TURN: usize = 64;

/// How a flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As its source did.
    Passed(Hangup),
    /// By a fault that ends the whole connection.
    Cut(Hangup),
    /// The receiver is gone.
    Broken,
}

/// One direction.
#[derive(Default)]
pub(crate) struct Flow {
    pub(crate) faults: Faults,
    outbox: Outbox,
    held_bytes: usize,
    /// Nothing more comes from the source.
    pub(crate) source_over: bool,
    /// The source was reset, as a write to it has found: the system does not tell that twice.
    pub(crate) source_reset: bool,
    /// Nothing more goes to the receiver; what the source still sends is thrown away.
    pub(crate) over: bool,
    /// The receiver's kernel took less than offered; wait until it takes more.
    pub(crate) blocked: bool,
    next_write: Option<Instant>,
    pub(crate) bytes_passed: u64,
    pub(crate) bytes_discarded: u64,
}

impl Flow {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    /// Changes the faults; a pause that has begun under the old ones is over.
    pub(crate) fn change_faults(&mut self, change: &dyn Fn(&mut Faults)) {
        change(&mut self.faults);
        self.next_write = None;
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether the source may be read.
    pub(crate) fn may_read(&self) -> bool {
        let may_hold = !self.faults.stalled && self.held_bytes < HELD_BYTES_MAX;
        !self.source_over && (self.over || may_hold)
    }

    /// Takes what the source has, as far as there is room.
    pub(crate) fn read(&mut self, source: &OwnedFd, space: &mut [u8], now: Instant) {
        let room = if self.over { space.len() } else { space.len().min(HELD_BYTES_MAX - self.held_bytes) };
        let (count, end) = match rustix::io::read(source, &mut space[..room]) {
            Ok(0) => (0, Some(if self.source_reset { Hangup::Reset } else { Hangup::Fin })),
            Ok(count) => (count, None),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => (0, Some(Hangup::Reset)),
        };
        if self.over {
            self.bytes_discarded += count as u64;
            self.source_over = end.is_some();
            return;
        }
        if let Some(delay) = self.faults.delay {
            self.outbox.close_gate(Gate::At(now + delay));
        }
        self.outbox.tail().extend_from_slice(&space[..count]);
        self.held_bytes += count;
        if let Some(how) = end {
            self.outbox.close_gate(Gate::End(how));
            self.source_over = true;
        }
    }

    /// Passes on what may go now; says when that is over.
    pub(crate) fn write(&mut self, receiver: &OwnedFd, now: Instant) -> Option<End> {
        self.blocked = false;
        for _ in 0..WRITES_PER_TURN {
            if self.over {
                return None;
            }
            if let Some(cut) = self.faults.cut.filter(|cut| cut.bytes_left == 0) {
                return Some(End::Cut(cut.how));
            }
            if self.faults.stalled {
                return None;
            }
            if self.faults.black_hole {
                self.discard();
                self.over = self.source_over;
                return None;
            }
            let end = self.outbox.open_due(now);
            if self.outbox.unsent().is_empty() {
                return end.map(End::Passed);
            }
            if self.next_write.is_some_and(|due| due > now) {
                return None;
            }
            let unsent = self.outbox.unsent_mut();
            self.faults.corrupt(unsent);
            let limit = self.faults.write_limit(unsent.len());
            match send(receiver, &unsent[..limit], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.bytes_passed += count as u64;
                    self.held_bytes -= count;
                    self.outbox.advance(count);
                    self.next_write = self.faults.next_write(now, count);
                    if let Some(how) = self.faults.on_written(count) {
                        return Some(End::Cut(how));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return None;
                }
                Err(_) => return Some(End::Broken),
            }
        }
        // All of it may have been written, and the end come to the front.
        let end = self.outbox.open_due(now);
        if self.outbox.unsent().is_empty() {
            return end.map(End::Passed);
        }
        self.next_write = self.next_write.or(Some(now));
        None
    }

    /// Nothing is passed on any more.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.blocked = false;
        self.discard();
    }

    fn discard(&mut self) {
        self.outbox = Outbox::default();
        self.bytes_discarded += std::mem::take(&mut self.held_bytes) as u64;
    }

    /// When `write` must be called, even if nothing happens.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.over || self.faults.stalled || self.blocked {
            return None;
        }
        let write = self.next_write.filter(|_| !self.outbox.unsent().is_empty());
        [write, self.outbox.next_deadline()].into_iter().flatten().min()
    }
}
