//! One socket: the kernel's send buffer, the bytes on their way, and which calls they belong to.

use crate::checkers::{Context, Place};
use crate::rng::Rng;
use crate::wire;
use respiral::buf::{Block, Transmit};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Connecting,
    Open,
    /// `Failed` was told.
    Failed,
    Closed,
}

/// One direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    Good,
    Stalled(u64),
    /// Nothing will ever pass, and nobody says so.
    Lost,
}

impl Link {
    /// What is lost stays lost.
    pub fn stall(&mut self, until: u64) {
        if *self != Link::Lost {
            *self = Link::Stalled(until);
        }
    }
}

/// The outstanding send. The chunks are kept as they are and read when they are taken, as a kernel does (H27).
pub struct Outgoing {
    data: Transmit,
    /// What the chunks held when they were given.
    copy: Vec<u8>,
    length: usize,
    taken: usize,
}

/// A frame in the stream that was handed over.
struct Frame {
    call: Option<u64>,
    start: u64,
    end: u64,
}

pub struct Socket {
    pub host: u8,
    /// When it was asked for.
    pub begun: u64,
    pub stage: Stage,
    pub closing: bool,
    /// The server's name for it.
    pub session: Option<u64>,
    pub outgoing: Option<Outgoing>,
    pub to_server: VecDeque<u8>,
    pub to_client: VecDeque<u8>,
    /// What comes goes there.
    pub block: Option<Block>,
    pub up: Link,
    pub down: Link,
    /// The peer will send nothing more.
    pub ended: bool,
    /// The kernel takes nothing more.
    pub deaf: bool,
    /// Until then it carries a few bytes at a time.
    pub slow_until: u64,
    /// Frames that are not wholly taken, in order; the last may be cut.
    frames: VecDeque<Frame>,
    /// The next send breaks so many bytes before or after the end of a frame.
    pub trap: Option<i64>,
    /// The beginning of a frame whose rest is not handed over yet.
    rest: Vec<u8>,
    handed: u64,
    taken: u64,
}

impl Socket {
    pub fn new(host: u8, begun: u64) -> Self {
        Self {
            host,
            begun,
            stage: Stage::Connecting,
            closing: false,
            session: None,
            outgoing: None,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            block: None,
            up: Link::Good,
            down: Link::Good,
            ended: false,
            deaf: false,
            slow_until: 0,
            frames: VecDeque::new(),
            trap: None,
            rest: Vec::new(),
            handed: 0,
            taken: 0,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Closed, and nothing is on its way to the server.
    pub fn is_over(&self) -> bool {
        self.is_closed() && (self.to_server.is_empty() || self.up == Link::Lost || self.session.is_none())
    }

    pub fn send_buffer_has_room(&self, capacity: usize) -> bool {
        self.to_server.len() < capacity
    }

    /// The engine gets a send.
    pub fn hand(&mut self, id: Place, data: Transmit, context: &mut Context) {
        assert!(self.stage != Stage::Connecting, "a send before the socket is connected");
        assert!(!self.closing && !self.is_closed(), "a send after the close");
        assert!(self.outgoing.is_none(), "two sends on one socket (H28)");
        assert_eq!(self.taken, self.handed, "a send after one that was cut");
        let bytes: Vec<u8> = data.iter().flat_map(|slice| slice.iter().copied()).collect();
        assert!(!bytes.is_empty(), "an empty send");
        self.outgoing = Some(Outgoing { data, length: bytes.len(), taken: 0, copy: bytes.clone() });
        // A frame of more than a mebibyte comes in several sends; its beginning waits in `rest`.
        let base = self.handed - self.rest.len() as u64;
        if !self.rest.is_empty() {
            self.frames.pop_back();
        }
        self.rest.extend_from_slice(&bytes);
        self.handed += bytes.len() as u64;
        let mut at = 0;
        while let Some((length, words)) = wire::parse(&self.rest[at..]) {
            let (call, start) = (wire::call_of(&words), base + at as u64);
            if let Some(call) = call {
                context.ledger.handed(call, id);
                if start < self.taken {
                    context.ledger.accepted(call, id);
                }
                context.trace.note(context.now, || format!("  {} {call}", String::from_utf8_lossy(words[0])));
            }
            self.frames.push_back(Frame { call, start, end: start + length as u64 });
            at += length;
        }
        self.rest.drain(..at);
        if !self.rest.is_empty() {
            assert!(bytes.len() >= 1 << 20, "a send ends inside a frame");
            self.frames.push_back(Frame { call: None, start: base + at as u64, end: u64::MAX });
        }
    }

    /// The kernel takes up to `most` bytes; what is left of the send. `None` when there is nothing to take.
    pub fn take(&mut self, id: Place, most: usize, capacity: usize, context: &mut Context) -> Option<usize> {
        let outgoing = self.outgoing.as_mut()?;
        if self.stage != Stage::Open || self.deaf || outgoing.taken == outgoing.length {
            return None;
        }
        let room = capacity.saturating_sub(self.to_server.len());
        let count = most.min(room).min(outgoing.length - outgoing.taken);
        let mut bytes = Vec::with_capacity(count);
        let mut skip = outgoing.taken;
        for slice in &outgoing.data {
            let from = skip.min(slice.len());
            let to = (from + count - bytes.len()).min(slice.len());
            bytes.extend_from_slice(&slice[from..to]);
            skip -= from;
        }
        assert_eq!(bytes.len(), count);
        outgoing.taken += count;
        let left = outgoing.length - outgoing.taken;
        self.taken += count as u64;
        if self.session.is_some() {
            self.to_server.extend(bytes);
        }
        self.account(id, count as u64, context);
        Some(left)
    }

    /// How many bytes to take before the trap springs, when there is one and a send to cut.
    pub fn spring(&mut self, rng: &mut Rng) -> Option<usize> {
        self.outgoing.as_ref().filter(|outgoing| outgoing.taken < outgoing.length)?;
        let offset = self.trap.take()?;
        let frame = &self.frames[rng.index(self.frames.len())];
        let end = if frame.end == u64::MAX { frame.start } else { frame.end };
        Some(end.saturating_add_signed(offset).saturating_sub(self.taken) as usize)
    }

    /// The call whose frame is taken in part.
    pub fn cut_call(&self) -> Option<u64> {
        self.frames.iter().find(|frame| frame.start < self.taken && self.taken < frame.end)?.call
    }

    /// The kernel takes `count` bytes and then no more.
    pub fn cut(&mut self, id: Place, count: usize, context: &mut Context) {
        self.take(id, count, usize::MAX, context);
        self.deaf = true;
    }

    fn account(&mut self, id: Place, count: u64, context: &mut Context) {
        let before = self.taken - count;
        for frame in &self.frames {
            if frame.start >= self.taken {
                break;
            }
            let Some(call) = frame.call else { continue };
            if frame.start >= before {
                context.ledger.accepted(call, id);
            }
            if frame.end <= self.taken {
                context.ledger.taken(call);
            }
        }
    }

    /// The send is over: how much of it was taken. `None` when there is none.
    pub fn end_send(&mut self, context: &mut Context) -> Option<usize> {
        let outgoing = self.outgoing.take()?;
        let same = outgoing.data.iter().flat_map(|slice| slice.iter()).eq(outgoing.copy.iter());
        assert!(same, "bytes change while the kernel may read them (H27)");
        for frame in &self.frames {
            if let Some(call) = frame.call {
                context.ledger.sent(call, context.now);
            }
        }
        let taken = self.taken;
        self.frames.retain(|frame| frame.end > taken);
        Some(outgoing.taken)
    }

    /// It breaks: nothing arrives any more on either side. Gives the session that ends.
    pub fn break_off(&mut self) -> Option<u64> {
        self.stage = Stage::Failed;
        self.to_server.clear();
        self.to_client.clear();
        self.session.take()
    }
}
