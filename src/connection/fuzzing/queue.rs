//! What a pipeline shall do, told naively: commands in order, how far each has come, and whose reply is next.

use crate::connection::pipeline::{Progress, SEND_MAX};
use crate::error::Delivery;
use std::collections::VecDeque;

struct Entry {
    ticket: u32,
    number: u64,
    bytes: Vec<u8>,
    /// Where it begins in the log.
    start: u64,
    /// How much of it the engine has got, and the kernel taken.
    given: usize,
    taken: usize,
    /// Its caller is there.
    waits: bool,
}

/// See the module.
#[derive(Default)]
pub struct Queue {
    entries: VecDeque<Entry>,
    end: u64,
    /// The outstanding send: numbers, and how much of each.
    sending: Vec<(u64, usize)>,
    /// Where that begins in the log.
    sending_start: Option<u64>,
}

impl Queue {
    pub fn push(&mut self, ticket: u32, number: u64, bytes: Vec<u8>) {
        let start = self.end;
        self.end += bytes.len() as u64;
        self.entries.push_back(Entry { ticket, number, bytes, start, given: 0, taken: 0, waits: true });
    }

    pub fn in_flight(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that are kept: from the oldest that awaits its reply or its send on.
    pub fn bytes(&self) -> u64 {
        let first = self.entries.front().map_or(self.end, |entry| entry.start);
        self.end - self.sending_start.map_or(first, |start| start.min(first))
    }

    pub fn cancel(&mut self, number: u64) {
        let Some(at) = self.entries.iter().position(|entry| entry.number == number) else { return };
        self.entries[at].waits = false;
        if self.entries[at].given == 0 {
            self.entries.remove(at);
        }
    }

    /// How far a command has come whose caller waits.
    pub fn progress(&self, number: u64) -> Option<Progress> {
        let entry = self.entries.iter().find(|entry| entry.number == number && entry.waits)?;
        let (len, is_sending) = (entry.bytes.len(), self.sending_start.is_some());
        Some(match (entry.given, entry.taken) {
            (0, _) => Progress::Queued,
            (_, taken) if taken == len => Progress::Taken,
            (given, _) if is_sending || given < len => Progress::Submitted,
            (_, 0) => Progress::Queued,
            _ => Progress::Cut,
        })
    }

    /// A reply is owed for something that the engine has got.
    pub fn owes_reply(&self) -> bool {
        self.entries.front().is_some_and(|entry| entry.given > 0)
    }

    /// Something waits for the engine.
    pub fn has_unsent(&self) -> bool {
        self.entries.iter().any(|entry| entry.given < entry.bytes.len())
    }

    /// What the next send shall carry; the engine has got it.
    pub fn give(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.given < entry.bytes.len()) {
            let count = (entry.bytes.len() - entry.given).min(SEND_MAX as usize - out.len());
            if count == 0 {
                break;
            }
            self.sending_start.get_or_insert(entry.start + entry.given as u64);
            out.extend_from_slice(&entry.bytes[entry.given..entry.given + count]);
            entry.given += count;
            self.sending.push((entry.number, count));
        }
        out
    }

    pub fn is_sending(&self) -> bool {
        self.sending_start.is_some()
    }

    /// The send is over, so much of it was taken.
    pub fn sent(&mut self, mut bytes: usize) {
        self.sending_start = None;
        for (number, count) in std::mem::take(&mut self.sending) {
            let taken = count.min(bytes);
            bytes -= taken;
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
                entry.taken += taken;
            }
        }
    }

    /// A reply came: whose it is, if anybody waits. `None` when none is owed.
    pub fn pop(&mut self) -> Option<Option<u32>> {
        let is_given = |entry: &Entry| entry.given == entry.bytes.len();
        let entry = self.entries.pop_front_if(|entry| is_given(entry))?;
        Some(entry.waits.then_some(entry.ticket))
    }

    /// The socket is closed. Those end that it has touched; the others are as new.
    pub fn close(&mut self) -> Vec<(u32, Delivery)> {
        let mut ended = Vec::new();
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.taken > 0) {
            let is_whole = entry.taken == entry.bytes.len();
            if entry.waits {
                let delivery = if is_whole { Delivery::MaybeExecuted } else { Delivery::NotExecuted };
                ended.push((entry.ticket, delivery));
            }
        }
        self.entries.retain(|entry| entry.waits);
        self.entries.iter_mut().for_each(|entry| entry.given = 0);
        ended
    }

    /// Nothing will carry it.
    pub fn clear(&mut self) -> Vec<(u32, Delivery)> {
        let ended = self.entries.drain(..).filter(|entry| entry.waits);
        ended.map(|entry| (entry.ticket, Delivery::NotExecuted)).collect()
    }
}
