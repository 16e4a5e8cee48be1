//! From received segments to whole frames.
//!
//! A frame that lies in one segment is never copied here. The beginning of a frame whose end has not arrived is kept:
//! copied when it is small, so that an idle connection pins no buffer, held otherwise; and when the pool runs low it
//! is moved to the heap, since nothing would ever complete if every buffer held the beginning of something (H20).

use crate::buf::{BufferPool, Chain, Glance, HOLD_FROM, Payload, Segment, Spares};
use crate::error::ProtocolError;
use crate::resp::{FrameKind, Limits, Scan, Scanner};

/// A frame that ends in the input; it may have begun before.
#[derive(Clone, Copy)]
pub struct Frame<'i> {
    /// Reply or push.
    pub kind: FrameKind,
    glance: Glance,
    /// What of it lies in the input.
    bytes: &'i [u8],
}

/// See the module.
pub struct Inbound {
    scanner: Scanner,
    /// The beginning of an incomplete frame: first what was copied, then what is held.
    copied: Vec<u8>,
    held: Chain,
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

    /// The next frame of `rest` and what it is, when nothing came before it and it is a short reply that lies whole here:
    /// the way of nearly all. Nothing is taken.
    #[inline(always)]
    pub fn peek_short<'i>(&self, rest: &'i [u8]) -> Option<(&'i [u8], Glance)> {
        let (bytes, glance) = self.scanner.peek_leaf(rest)?;
        (bytes.len() < HOLD_FROM).then_some((bytes, glance))
    }

    /// The next whole frame of `input`, of which `rest` is still to be looked at, or `None` when it is used up (its rest
    /// is kept). A frame that is found has to be taken or dropped before the next one.
    pub fn next<'i>(
        &mut self,
        input: &Segment,
        rest: &mut &'i [u8],
        pool: Option<&BufferPool>,
    ) -> Result<Option<Frame<'i>>, ProtocolError> {
        if rest.is_empty() {
            return Ok(None);
        }
        match self.scanner.advance(rest)? {
            Scan::Complete { consumed, kind, glance, .. } => {
                let (bytes, later) = rest.split_at(consumed);
                *rest = later;
                Ok(Some(Frame { kind, glance, bytes }))
            }
            Scan::Incomplete => {
                self.keep(input.slice(input.len() - rest.len()..input.len()), pool);
                *rest = &[];
                Ok(None)
            }
        }
    }

    /// The bytes of a frame.
    pub fn take(
        &mut self,
        frame: Frame<'_>,
        (input, rest): (&Segment, &[u8]),
        pool: Option<&BufferPool>,
        spares: &Spares,
    ) -> Payload {
        if self.is_clean() && frame.bytes.len() < HOLD_FROM {
            return spares.copy_of(frame.bytes, frame.glance);
        }
        let end = input.len() - rest.len();
        self.take_large(input.slice(end - frame.bytes.len()..end), frame.glance, pool, spares)
    }

    fn take_large(
        &mut self,
        last: Segment,
        glance: Glance,
        pool: Option<&BufferPool>,
        spares: &Spares,
    ) -> Payload {
        if !self.is_clean() {
            return self.join(last, pool, spares);
        }
        if may_hold(pool) { spares.held(last.into(), glance) } else { spares.copy_of(&last, glance) }
    }

    /// Nobody wants the frame.
    pub fn drop_frame(&mut self) {
        // What a large reply needed is not kept.
        if self.copied.capacity() > Self::GROWTH_MIN {
            self.copied = Vec::new();
        }
        self.copied.clear();
        self.held.clear();
    }

    /// True when nothing is kept from earlier segments.
    #[inline]
    fn is_clean(&self) -> bool {
        self.copied.is_empty() && self.held.is_empty()
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
            let payload = spares.copy_of(&bytes, Glance::Unknown);
            bytes.clear();
            self.copied = bytes;
            return payload;
        }
        if self.copied.len() >= HOLD_FROM || !may_hold(pool) {
            let mut bytes = std::mem::take(&mut self.copied);
            self.held.copy_to(&mut bytes);
            self.held.clear();
            bytes.extend_from_slice(&last);
            return spares.held(Segment::from(bytes).into(), Glance::Unknown);
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
        spares.held(chain, Glance::Unknown)
    }
}

/// Callers may hold at most half of the pool; beyond that replies are copied.
fn may_hold(pool: Option<&BufferPool>) -> bool {
    pool.is_none_or(|pool| pool.available() * 2 >= pool.count())
}

fn is_low(pool: Option<&BufferPool>) -> bool {
    pool.is_some_and(|pool| pool.available() * 4 < pool.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buf::Parts;

    /// Receives `bytes` in one buffer of the pool.
    fn receive(pool: &BufferPool, bytes: &[u8]) -> Segment {
        let mut buffer = pool.take_free().expect("a buffer to receive into");
        buffer.bytes()[..bytes.len()].copy_from_slice(bytes);
        buffer.filled(bytes.len())
    }

    fn bulk(length: usize, seed: u8) -> Vec<u8> {
        let mut out = format!("${length}\r\n").into_bytes();
        out.extend((0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)));
        out.extend_from_slice(b"\r\n");
        out
    }

    fn bytes_of(payload: &Payload) -> Vec<u8> {
        match payload.parts() {
            Parts::Whole(bytes) => bytes.to_vec(),
            Parts::Segments(segments) => segments.iter().flat_map(|segment| segment.to_vec()).collect(),
        }
    }

    fn inbound() -> Inbound {
        Inbound::new(Limits::default())
    }

    /// Feeds `stream` in pieces of `piece` bytes; gives the frames.
    fn feed(inbound: &mut Inbound, pool: &BufferPool, stream: &[u8], piece: usize) -> Vec<Payload> {
        let spares = Spares::default();
        let mut frames = Vec::new();
        for part in stream.chunks(piece) {
            let input = receive(pool, part);
            let mut rest = &input[..];
            while let Some(frame) = inbound.next(&input, &mut rest, Some(pool)).expect("valid") {
                frames.push(inbound.take(frame, (&input, rest), Some(pool), &spares));
            }
        }
        frames
    }

    #[test]
    fn any_piece_size_gives_the_same_frames() {
        let pool = BufferPool::new(64, 4096);
        let expected: Vec<Vec<u8>> =
            [3, 1000, 1015, 1016, 1017, 5000, 20_000].iter().map(|n| bulk(*n, 7)).collect();
        let stream = expected.concat();
        for piece in [1, 2, 7, 100, 1024, 4095, 4096] {
            let frames = feed(&mut inbound(), &pool, &stream, piece);
            assert_eq!(frames.iter().map(bytes_of).collect::<Vec<_>>(), expected, "pieces of {piece}");
            drop(frames);
            assert_eq!(pool.lent(), 0);
        }
    }

    // H20: three large replies through a pool that cannot hold them; without spilling they would wait for ever.
    #[test]
    fn partial_replies_do_not_use_up_the_pool() {
        let pool = BufferPool::new(8, 16 * 1024);
        let spares = Spares::default();
        let replies: Vec<Vec<u8>> = (0..3).map(|seed| bulk(60_000, seed)).collect();
        let mut connections: Vec<Inbound> = (0..3).map(|_| inbound()).collect();
        let mut done = Vec::new();
        for at in (0..60_009).step_by(10_000) {
            for (index, connection) in connections.iter_mut().enumerate() {
                let part =
                    &replies[index][at.min(replies[index].len())..(at + 10_000).min(replies[index].len())];
                if part.is_empty() {
                    continue;
                }
                let input = receive(&pool, part);
                let mut rest = &input[..];
                while let Some(frame) = connection.next(&input, &mut rest, Some(&pool)).expect("valid") {
                    let reply = connection.take(frame, (&input, rest), Some(&pool), &spares);
                    done.push((index, bytes_of(&reply)));
                }
            }
        }
        assert_eq!(done.len(), 3);
        assert!(done.iter().all(|(index, bytes)| *bytes == replies[*index]));
        assert_eq!(pool.lent(), 0);
    }

    // H20: a reply of four times the pool.
    #[test]
    fn a_reply_larger_than_the_pool() {
        let pool = BufferPool::new(4, 4096);
        let reply = bulk(16 * 4096, 1);
        let frames = feed(&mut inbound(), &pool, &reply, 4096);
        assert_eq!(frames.iter().map(bytes_of).collect::<Vec<_>>(), [reply]);
        assert_eq!(pool.lent(), 0);
    }

    // H21: small replies are copied; whoever keeps large ones gets at most half of the pool.
    #[test]
    fn kept_replies_leave_half_of_the_pool() {
        let pool = BufferPool::new(16, 4096);
        let mut inbound = inbound();
        let mut kept = Vec::new();
        for seed in 0..100 {
            kept.extend(feed(&mut inbound, &pool, &bulk(5, seed), 4096));
            kept.extend(feed(&mut inbound, &pool, &bulk(3000, seed), 4096));
            assert!(pool.available() >= pool.count() / 2, "{} left", pool.available());
        }
        assert_eq!(kept.len(), 200);
        for (index, payload) in kept.iter().enumerate() {
            let length = if index % 2 == 0 { 5 } else { 3000 };
            assert_eq!(bytes_of(payload), bulk(length, (index / 2) as u8));
        }
    }

    // Memory follows what arrives, not what is announced.
    #[test]
    fn an_announced_length_takes_no_memory() {
        let pool = BufferPool::new(8, 4096);
        let mut inbound = inbound();
        assert!(feed(&mut inbound, &pool, b"$536870912\r\nabc", 4096).is_empty());
        assert!(inbound.copied.capacity() <= 2 * Inbound::GROWTH_MIN, "{}", inbound.copied.capacity());
        assert_eq!(pool.lent(), 0);
    }

    #[test]
    fn an_idle_connection_pins_no_buffer() {
        let pool = BufferPool::new(8, 4096);
        let mut inbound = inbound();
        assert!(feed(&mut inbound, &pool, b"$3\r\nab", 4096).is_empty());
        assert_eq!(pool.lent(), 0);
    }
}
