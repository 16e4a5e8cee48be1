//! From received segments to whole frames.
//!
//! A frame that lies in one segment is never copied here. The beginning of a frame whose end has not arrived is kept:
//! copied when it is small, so that an idle connection pins no buffer, held otherwise; and when the pool runs low it
//! is moved to the heap, since nothing would ever complete if every buffer held the beginning of something (H20).

use crate::buf::{BufferPool, Chain, Payload, Segment, Spares};
use crate::error::ProtocolError;
use crate::resp::{FrameKind, Limits, Scan, Scanner};

/// Replies below this many bytes are copied out of the received buffer: 4 to 23 ns, against pinning 16 KiB (H21).
pub(crate) const HOLD_FROM: usize = 1024;

/// One frame.
pub struct Frame {
    /// Reply or push.
    pub kind: FrameKind,
    /// Its bytes.
    pub payload: Payload,
}

/// See the module.
pub struct Inbound {
    scanner: Scanner,
    /// The beginning of an incomplete frame: first what was copied, then what is held.
    copied: Vec<u8>,
    held: Chain,
}

/// The received bytes that are still to be looked at.
pub struct Input {
    segment: Segment,
    at: usize,
}

impl Input {
    pub fn new(segment: Segment) -> Self {
        Self { segment, at: 0 }
    }
}

impl Inbound {
    /// Bytes by which the copy of a large reply grows at least.
    const GROWTH_MIN: usize = 64 * 1024;

    pub fn new(limits: Limits) -> Self {
        Self { scanner: Scanner::new(limits, false), copied: Vec::new(), held: Chain::default() }
    }

    /// Forgets everything: a new socket begins.
    pub fn reset(&mut self) {
        self.scanner.reset();
        self.copied = Vec::new();
        self.held.clear();
    }

    pub fn set_resp3(&mut self, resp3: bool) {
        self.scanner.set_resp3(resp3);
    }

    /// The next whole frame, or `None` when the input is used up (its rest is kept).
    #[inline]
    pub fn next(
        &mut self,
        input: &mut Input,
        pool: Option<&BufferPool>,
        spares: &Spares,
    ) -> Result<Option<Frame>, ProtocolError> {
        let bytes = &input.segment[input.at..];
        if bytes.is_empty() {
            return Ok(None);
        }
        match self.scanner.advance(bytes)? {
            Scan::Complete { consumed, kind, .. } => {
                let from = input.at;
                input.at += consumed;
                let payload = if self.copied.is_empty() && self.held.is_empty() {
                    if consumed < HOLD_FROM || !may_hold(pool) {
                        small_or_heap(&bytes[..consumed], spares)
                    } else {
                        Payload::Held(input.segment.slice(from..from + consumed).into())
                    }
                } else {
                    let last = input.segment.slice(from..from + consumed);
                    self.join(last, pool, spares)
                };
                Ok(Some(Frame { kind, payload }))
            }
            Scan::Incomplete => {
                let rest = input.segment.slice(input.at..input.segment.len());
                input.at = input.segment.len();
                self.keep(rest, pool);
                Ok(None)
            }
        }
    }

    /// Keeps the beginning of a frame.
    fn keep(&mut self, rest: Segment, pool: Option<&BufferPool>) {
        let missing = self.scanner.wanted();
        let exceeds_pool = pool.is_some_and(|pool| missing >= pool.count() * pool.buffer_size() / 4);
        let stays_small = self.copied.len() + rest.len() < HOLD_FROM;
        if self.held.is_empty() && (self.copied.len() >= HOLD_FROM || stays_small || exceeds_pool) {
            if self.copied.capacity() - self.copied.len() < rest.len() {
                // Memory grows with what arrives, at most doubling, and never past what was announced.
                let step = missing.min(self.copied.len().max(Self::GROWTH_MIN));
                self.copied.reserve_exact(rest.len() + step);
            }
            self.copied.extend_from_slice(&rest);
            return;
        }
        self.held.push(rest);
        if is_low(pool) {
            self.spill();
        }
    }

    /// Moves what is held to the heap.
    fn spill(&mut self) {
        self.held.copy_to(&mut self.copied);
        self.held.clear();
    }

    /// The frame that `last` completes.
    fn join(&mut self, last: Segment, pool: Option<&BufferPool>, spares: &Spares) -> Payload {
        let total = self.copied.len() + self.held.len() + last.len();
        if total < HOLD_FROM {
            let mut bytes = std::mem::take(&mut self.copied);
            self.held.copy_to(&mut bytes);
            bytes.extend_from_slice(&last);
            self.held.clear();
            let payload = Payload::Small(spares.copy_of(&bytes));
            bytes.clear();
            self.copied = bytes;
            return payload;
        }
        if self.copied.len() >= HOLD_FROM || !may_hold(pool) {
            let mut bytes = std::mem::take(&mut self.copied);
            self.held.copy_to(&mut bytes);
            self.held.clear();
            bytes.extend_from_slice(&last);
            return Payload::Held(Segment::from(bytes).into());
        }
        let mut chain = Chain::default();
        if !self.copied.is_empty() {
            chain.push(Segment::copy_of(&self.copied));
            self.copied.clear();
        }
        for segment in std::mem::take(&mut self.held).into_segments() {
            chain.push(segment);
        }
        chain.push(last);
        Payload::Held(chain)
    }

    /// Bytes that are kept of an incomplete frame.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.copied.len() + self.held.len()
    }
}

fn small_or_heap(bytes: &[u8], spares: &Spares) -> Payload {
    if bytes.len() < HOLD_FROM {
        Payload::Small(spares.copy_of(bytes))
    } else {
        Payload::Held(Segment::copy_of(bytes).into())
    }
}

/// Callers may hold at most half of the pool; beyond that replies are copied.
fn may_hold(pool: Option<&BufferPool>) -> bool {
    pool.is_none_or(|pool| pool.available() * 2 >= pool.count())
}

fn is_low(pool: Option<&BufferPool>) -> bool {
    pool.is_some_and(|pool| pool.available() * 4 < pool.count())
}
