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

use crate::buf::{Log, Returns, Transmit};
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
    /// Between batches, the first is never a gap: it would hold its bytes, which count against the limit, for ever.
    entries: VecDeque<Entry>,
    /// Number of the first entry; numbers never repeat.
    first: u64,
    /// Where the first entry begins.
    answered: u64,
    accepted: u64,
    submitted: u64,
    /// Gaps that lie in `submitted..end`, in order.
    gaps: VecDeque<(u64, u64)>,
    /// Bytes of those.
    gap_bytes: u64,
    /// The ranges of the outstanding send, in order.
    sending: VecDeque<(u64, u64)>,
    /// Entries that are not gaps.
    live: usize,
    /// Bytes of the last frame, as a guess of the next.
    last_len: u64,
}

impl Pipeline {
    /// An empty one whose log has chunks of `write_buffer` bytes, and gives what it was lent to `returns`.
    pub fn new(write_buffer: usize, returns: Returns) -> Self {
        Self {
            log: Log::returning_to(write_buffer, returns),
            entries: VecDeque::new(),
            first: 0,
            answered: 0,
            accepted: 0,
            submitted: 0,
            gaps: VecDeque::new(),
            gap_bytes: 0,
            sending: VecDeque::new(),
            live: 0,
            last_len: 0,
        }
    }

    /// Commands that are queued or await their reply.
    pub fn in_flight(&self) -> usize {
        self.live
    }

    /// Bytes of those commands.
    pub fn bytes(&self) -> u64 {
        self.log.len()
    }

    /// What those bytes will be when `count` more commands like the last one have come.
    #[inline]
    pub fn bytes_with(&self, count: usize) -> u64 {
        match count {
            0 => self.log.len(),
            _ => self.log.len().saturating_add(self.last_len.saturating_mul(count as u64)),
        }
    }

    /// Appends one frame, written by `encode`, and tells its number.
    pub fn push(&mut self, ticket: TicketId, encode: impl FnOnce(&mut Log)) -> u64 {
        /// Arguments are user code. When one panics, what it left must not reach the wire: it becomes a gap.
        struct Torn<'a>(&'a mut Pipeline, u64);
        impl Drop for Torn<'_> {
            fn drop(&mut self) {
                let end = self.0.log.end();
                if end > self.1 {
                    self.0.entries.push_back(Entry { ticket: None, end, is_gap: true });
                    self.0.gaps.push_back((self.1, end));
                    self.0.gap_bytes += end - self.1;
                    self.0.drop_answered_gaps();
                }
            }
        }
        let start = self.log.end();
        let torn = Torn(self, start);
        encode(&mut torn.0.log);
        std::mem::forget(torn);
        let end = self.log.end();
        self.entries.push_back(Entry { ticket: Some(ticket), end, is_gap: false });
        if planted!(RepliesSwapped)
            && let [.., before, last] = self.entries.make_contiguous()
        {
            std::mem::swap(&mut before.ticket, &mut last.ticket);
        }
        self.live += 1;
        self.last_len = end - start;
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
        } else if self.is_sending() || end > self.submitted || planted!(CutIsMaybe) {
            Progress::Submitted
        } else if start >= self.accepted {
            // The send is over and the kernel took nothing of it.
            Progress::Queued
        } else {
            Progress::Cut
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
        if range.0 < self.submitted || self.entries[index].is_gap || planted!(CancelledIsSent) {
            if planted!(PlaceLost) && index > 0 {
                self.entries.remove(index);
                self.live -= 1;
            }
            return;
        }
        self.entries[index].is_gap = true;
        self.live -= 1;
        let at = self.gaps.partition_point(|gap| gap.1 <= range.0);
        self.gaps.insert(at, range);
        self.gap_bytes += range.1 - range.0;
        if !planted!(BytesKept) {
            self.drop_answered_gaps();
        }
    }

    /// True when there is something to give to the engine and no send is outstanding.
    pub fn has_transmit(&self) -> bool {
        self.sending.is_empty() && self.log.end() - self.submitted > self.gap_bytes
    }

    fn pop_gap(&mut self) {
        if let Some((start, end)) = self.gaps.pop_front() {
            self.gap_bytes -= end - start;
        }
    }

    /// The next send: everything queued, without gaps, up to 1 MiB.
    pub fn transmit(&mut self) -> Transmit {
        debug_assert!(self.sending.is_empty(), "one send at a time");
        let mut out = Transmit::new();
        let mut room = SEND_MAX;
        while room > 0 && self.submitted < self.log.end() {
            let from = self.submitted;
            let mut to = self.log.end();
            if let Some(gap) = self.gaps.front().copied() {
                if gap.0 == from {
                    self.pop_gap();
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

    /// The kernel has taken `bytes` of the outstanding send, which is over. False when that is less than all: nothing
    /// may follow on this socket.
    pub fn handle_sent(&mut self, bytes: usize) -> bool {
        let mut left = bytes as u64;
        let given: u64 = self.sending.iter().map(|(from, to)| to - from).sum();
        for (from, to) in self.sending.drain(..) {
            let taken = left.min(to - from);
            if taken > 0 {
                self.accepted = from + taken;
            }
            left -= taken;
        }
        self.release_bytes();
        if planted!(CutSendGoesOn) && given > bytes as u64 {
            self.submitted = self.accepted + 1;
            return true;
        }
        bytes as u64 >= given
    }

    /// True while a send is outstanding.
    pub fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Takes entries from the front while their callers wait for them and `reply` finds their replies: the way of nearly
    /// all. Tells how many. See [`pop`](Self::pop).
    #[inline(always)]
    pub fn take_awaited(&mut self, mut reply: impl FnMut(TicketId) -> bool) -> usize {
        let mut taken = 0;
        let (front, back) = self.entries.as_slices();
        for entries in [front, back] {
            for entry in entries {
                let Some(ticket) = entry.ticket else { break };
                if entry.end > self.submitted || !reply(ticket) {
                    break;
                }
                taken += 1;
                self.answered = entry.end;
            }
            if taken < front.len() {
                break;
            }
        }
        self.entries.drain(..taken);
        self.first += taken as u64;
        self.live -= taken;
        taken
    }

    /// Takes the entry whose reply has arrived: `Some(None)` when its caller is gone, `None` when no reply is owed.
    /// After a batch of these, [`release`](Self::release) gives the bytes back.
    pub fn pop(&mut self) -> Option<Option<TicketId>> {
        let front = self.entries.front()?;
        if front.is_gap {
            self.drop_answered_gaps();
            return self.pop();
        }
        // A server answers what it has read. A reply to a frame that the engine has not got whole is none, and taking it
        // for one would skip the rest of the frame.
        if front.end > self.submitted {
            return None;
        }
        let (ticket, end) = (front.ticket, front.end);
        self.entries.pop_front();
        self.first += 1;
        self.answered = end;
        self.live -= 1;
        Some(ticket)
    }

    /// True when a reply is owed for something that was given to the engine.
    pub fn owes_reply(&self) -> bool {
        self.live > 0 && self.answered < self.submitted
    }

    /// Entries at the front that are gaps have no reply to wait for. Every batch that changes the front ends with it.
    #[inline(never)]
    fn drop_answered_gaps(&mut self) {
        while let Some(front) = self.entries.front() {
            if !front.is_gap {
                break;
            }
            self.answered = front.end;
            if self.gaps.front().is_some_and(|gap| gap.1 <= self.answered) {
                self.pop_gap();
            }
            self.entries.pop_front();
            self.first += 1;
        }
        self.submitted = self.submitted.max(self.answered);
        self.release_bytes();
    }

    /// Gives back what is no longer needed: a byte may go when its command is answered *and* the kernel is done with it.
    pub fn release(&mut self) {
        if self.entries.front().is_some_and(|front| front.is_gap) {
            return self.drop_answered_gaps();
        }
        self.release_bytes();
    }

    fn release_bytes(&mut self) {
        let unsent = self.sending.front().map_or(self.submitted, |range| range.0);
        self.log.release(if planted!(MemoryReused) { self.answered } else { self.answered.min(unsent) });
    }

    /// The socket is gone and its last send is accounted for. What it had accepted is taken out and told to `ended`
    /// with its delivery, and whether its reply was the next; the rest is ready to go out on the next socket.
    pub fn handle_closed(&mut self, mut ended: impl FnMut(TicketId, Delivery, bool)) {
        debug_assert!(self.sending.is_empty(), "the engine tells of a send before it tells of the close");
        if planted!(AcceptedSentAgain) {
            self.accepted = self.answered;
        }
        if planted!(OneByteOff) {
            self.accepted += 1;
        }
        let mut is_next = true;
        while let Some(front) = self.entries.front() {
            if self.answered >= self.accepted && !front.is_gap {
                break;
            }
            let delivery =
                if front.end <= self.accepted { Delivery::MaybeExecuted } else { Delivery::NotExecuted };
            if !front.is_gap {
                self.live -= 1;
                if let Some(ticket) = front.ticket {
                    ended(ticket, delivery, is_next && front.end <= self.submitted);
                }
                is_next = false;
            }
            self.answered = front.end;
            self.entries.pop_front();
            self.first += 1;
        }
        // What is left was not seen by the kernel. Callers that left while the engine had their bytes need no next try.
        self.accepted = self.answered;
        self.submitted = self.answered;
        self.gaps.clear();
        self.gap_bytes = 0;
        let mut start = self.answered;
        for entry in &mut self.entries {
            if entry.ticket.is_none() && !entry.is_gap {
                entry.is_gap = true;
                self.live -= 1;
            }
            if entry.is_gap {
                self.gaps.push_back((start, entry.end));
                self.gap_bytes += entry.end - start;
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
        self.gap_bytes = 0;
        self.log.release(end);
    }
}

/// How far a command's bytes have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The engine has not got them, or gave them back whole.
    Queued,
    /// The engine has them, or a part; the kernel has not taken the last byte, as far as is known.
    Submitted,
    /// The kernel has taken a part, and will take no more: the send is over and the socket with it.
    Cut,
    /// The kernel has taken all of them.
    Taken,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticket(index: u32) -> TicketId {
        TicketId { index, generation: 0 }
    }

    fn push(pipeline: &mut Pipeline, index: u32, bytes: &[u8]) -> u64 {
        pipeline.push(ticket(index), |log| log.append(bytes))
    }

    fn send(pipeline: &mut Pipeline) -> Vec<u8> {
        pipeline.transmit().iter().flat_map(|slice| slice.to_vec()).collect()
    }

    fn closed(pipeline: &mut Pipeline) -> Vec<(u32, Delivery)> {
        let mut ended = Vec::new();
        pipeline.handle_closed(|ticket, delivery, _| ended.push((ticket.index, delivery)));
        ended
    }

    // SYS-006, F-07: a caller that left does not shift replies; what was not sent is not sent.
    #[test]
    fn cancelled_before_and_after_the_send() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        let first = push(&mut pipeline, 1, b"aaa");
        push(&mut pipeline, 2, b"bbb");
        assert_eq!(send(&mut pipeline), b"aaabbb");
        let third = push(&mut pipeline, 3, b"ccc");
        push(&mut pipeline, 4, b"ddd");
        pipeline.cancel(first);
        pipeline.cancel(third);
        pipeline.handle_sent(6);
        assert_eq!(send(&mut pipeline), b"ddd");
        pipeline.handle_sent(3);
        assert_eq!(pipeline.pop(), Some(None));
        assert_eq!(pipeline.pop(), Some(Some(ticket(2))));
        assert_eq!(pipeline.pop(), Some(Some(ticket(4))));
        assert_eq!(pipeline.pop(), None);
        pipeline.release();
        assert_eq!((pipeline.in_flight(), pipeline.bytes()), (0, 0));
    }

    #[test]
    fn a_queue_of_cancelled_commands_sends_nothing() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        let numbers: Vec<u64> = (0..3).map(|index| push(&mut pipeline, index, b"xy")).collect();
        for number in [numbers[1], numbers[2]] {
            pipeline.cancel(number);
        }
        assert!(pipeline.has_transmit());
        pipeline.cancel(numbers[0]);
        assert!(!pipeline.has_transmit());
        assert_eq!((pipeline.in_flight(), pipeline.bytes()), (0, 0));
    }

    // A-64: the kernel took all of the first, a part of the second, nothing of the third.
    #[test]
    fn a_cut_send_divides_three_fates() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        for index in 1..=3 {
            push(&mut pipeline, index, b"frame");
        }
        send(&mut pipeline);
        push(&mut pipeline, 4, b"later");
        pipeline.handle_sent(7);
        let fates = closed(&mut pipeline);
        assert_eq!(fates, [(1, Delivery::MaybeExecuted), (2, Delivery::NotExecuted)]);
        assert_eq!(send(&mut pipeline), b"framelater");
    }

    // A frame that was cut at its first byte is not accepted and moves.
    #[test]
    fn nothing_taken_moves_everything() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        push(&mut pipeline, 1, b"frame");
        send(&mut pipeline);
        pipeline.handle_sent(0);
        assert_eq!(closed(&mut pipeline), []);
        assert_eq!(send(&mut pipeline), b"frame");
    }

    #[test]
    fn a_reply_without_a_sent_command_is_refused() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        assert_eq!(pipeline.pop(), None);
        push(&mut pipeline, 1, b"frame");
        assert_eq!(pipeline.pop(), None);
        send(&mut pipeline);
        // H27: the reply may come before the send is known to be done.
        assert_eq!(pipeline.pop(), Some(Some(ticket(1))));
        pipeline.handle_sent(5);
        assert_eq!(pipeline.bytes(), 0);
    }

    // A frame that an argument's panic tore never reaches the wire, and shifts nothing.
    #[test]
    fn a_torn_frame_is_a_gap() {
        let mut pipeline = Pipeline::new(64, Returns::default());
        push(&mut pipeline, 1, b"one");
        let torn = std::panic::AssertUnwindSafe(|| {
            pipeline.push(ticket(2), |log| {
                log.append(b"half");
                panic!("an argument");
            });
        });
        assert!(std::panic::catch_unwind(torn).is_err());
        push(&mut pipeline, 3, b"three");
        assert_eq!(send(&mut pipeline), b"onethree");
        pipeline.handle_sent(8);
        assert_eq!(pipeline.pop(), Some(Some(ticket(1))));
        assert_eq!(pipeline.pop(), Some(Some(ticket(3))));
        pipeline.release();
        assert_eq!((pipeline.in_flight(), pipeline.bytes()), (0, 0));
    }

    // A reply to a frame whose rest is not with the engine is refused: its bytes must not be skipped.
    #[test]
    fn a_reply_before_the_whole_frame_is_none() {
        let mut pipeline = Pipeline::new(64 * 1024, Returns::default());
        push(&mut pipeline, 1, &vec![7; 3 << 20]);
        let first = send(&mut pipeline).len();
        assert_eq!(pipeline.pop(), None);
        pipeline.handle_sent(first);
        let queued = push(&mut pipeline, 2, b"x");
        pipeline.cancel(queued);
        let mut sent = first;
        while pipeline.has_transmit() {
            let part = send(&mut pipeline).len();
            pipeline.handle_sent(part);
            sent += part;
        }
        assert_eq!(sent, 3 << 20);
        assert_eq!(pipeline.pop(), Some(Some(ticket(1))));
    }

    #[test]
    fn sends_are_cut_at_a_mebibyte() {
        let mut pipeline = Pipeline::new(64 * 1024, Returns::default());
        push(&mut pipeline, 1, &vec![7; 3 << 20]);
        let sizes: Vec<usize> = std::iter::from_fn(|| {
            pipeline.has_transmit().then(|| {
                let length = send(&mut pipeline).len();
                pipeline.handle_sent(length);
                length
            })
        })
        .collect();
        assert_eq!(sizes, [1 << 20; 3]);
    }

    /// What a command went through, for the model.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Fate {
        Queued,
        Cancelled,
    }

    proptest! {
        // Each command is on the wire at most once over all sockets, whole unless its socket died, in order, never when
        // it was withdrawn in time; and it ends exactly once.
        #[test]
        fn any_sequence_is_honest(
            steps in prop::collection::vec((0u8..7, any::<prop::sample::Index>(), 0usize..40), 1..120),
            chunk in 1usize..32,
        ) {
            let mut pipeline = Pipeline::new(chunk, Returns::default());
            let mut next = 0u32;
            let mut numbers: Vec<(u32, u64, Fate)> = Vec::new();
            let mut outstanding: Option<Vec<u8>> = None;
            // What the peer of this socket got, and how many replies it gave.
            let mut wire: Vec<u8> = Vec::new();
            let mut replied = 0usize;
            let mut executed: Vec<u32> = Vec::new();
            let mut ended: Vec<u32> = Vec::new();
            let frame = |index: u32| format!("<{index}>");
            for (step, which, amount) in steps {
                match step {
                    0 | 1 => {
                        let number = push(&mut pipeline, next, frame(next).as_bytes());
                        numbers.push((next, number, Fate::Queued));
                        next += 1;
                    }
                    2 if !numbers.is_empty() => {
                        let (index, number, fate) = &mut numbers[which.index(next as usize)];
                        if !ended.contains(index) && *fate == Fate::Queued {
                            pipeline.cancel(*number);
                            *fate = Fate::Cancelled;
                            ended.push(*index);
                        }
                    }
                    3 if pipeline.has_transmit() => outstanding = Some(send(&mut pipeline)),
                    4 => {
                        if let Some(bytes) = outstanding.take() {
                            wire.extend_from_slice(&bytes);
                            pipeline.handle_sent(bytes.len());
                        }
                    }
                    5 => {
                        let whole = wire.iter().filter(|byte| **byte == b'>').count();
                        if replied < whole {
                            replied += 1;
                            if let Some(ticket) = pipeline.pop().expect("a reply is owed") {
                                prop_assert!(!ended.contains(&ticket.index));
                                ended.push(ticket.index);
                            }
                        }
                    }
                    6 => {
                        if let Some(bytes) = outstanding.take() {
                            let taken = amount.min(bytes.len());
                            wire.extend_from_slice(&bytes[..taken]);
                            pipeline.handle_sent(taken);
                        }
                        let text = String::from_utf8(wire.clone()).unwrap();
                        for (index, delivery) in closed(&mut pipeline) {
                            prop_assert!(!ended.contains(&index));
                            ended.push(index);
                            let ran = text.contains(&frame(index));
                            prop_assert_eq!(ran, delivery == Delivery::MaybeExecuted, "{}", index);
                        }
                        executed.extend(text.split_inclusive('>').filter(|f| f.ends_with('>')).map(|f| f[1..f.len() - 1].parse::<u32>().unwrap()));
                        wire.clear();
                        replied = 0;
                    }
                    _ => {}
                }
            }
            let mut unique = executed.clone();
            unique.dedup();
            prop_assert_eq!(&unique, &executed, "in order, at most once");
            prop_assert!(executed.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
