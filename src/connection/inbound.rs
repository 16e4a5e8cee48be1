//! From received segments to whole frames.
//!
//! A frame that lies in one segment is never copied here. The beginning of a frame whose end has not arrived is kept:
//! copied when it is small, so that an idle connection pins no buffer, held otherwise; and when the pool runs low it
//! is moved to the heap, since nothing would ever complete if every buffer held the beginning of something (H20).
//!
//! A string of which much is missing gets memory of its own, and the engine receives the rest right into it: no buffer is
//! used, no byte copied, and who wants to own the string just takes it.

use crate::buf::{Block, BufferPool, Chain, Glance, HOLD_FROM, Payload, Segment, Spares};
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
    /// The string at the end of it, when that gets memory of its own.
    filling: Option<Filling>,
}

enum Filling {
    Here(Vec<u8>),
    /// With the engine; it had so many bytes when it went.
    Away(usize),
}

impl Inbound {
    /// Bytes by which the copy of a large reply grows at least.
    const GROWTH_MIN: usize = 64 * 1024;
    /// A string gets memory of its own when so many bytes are missing.
    const FILL_FROM: usize = 64 * 1024;
    /// For fewer the engine is not asked: they come through buffers.
    const FILL_MIN: usize = 4096;
    /// That memory is so large at first, at most, and the engine is asked for so much at once: a peer announced more.
    const FILL_STEP: usize = (1 << 20) + 2;

    pub fn new(limits: Limits) -> Self {
        Self {
            scanner: Scanner::new(limits, false),
            copied: Vec::new(),
            held: Chain::default(),
            filling: None,
        }
    }

    /// Forgets everything: a new socket begins.
    pub fn reset(&mut self) {
        self.scanner.reset();
        self.copied = Vec::new();
        self.held.clear();
        self.filling = None;
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
        if self.filling.is_some()
            && let Some(frame) = self.fill_from(rest)?
        {
            return Ok(Some(frame));
        }
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

    /// Bytes for the block that came before the engine was asked for them.
    #[cold]
    fn fill_from<'i>(&mut self, rest: &mut &'i [u8]) -> Result<Option<Frame<'i>>, ProtocolError> {
        let (Some(Filling::Here(bytes)), Some((_, missing))) = (&mut self.filling, self.scanner.body())
        else {
            return Err(ProtocolError::new("bytes were received past a block"));
        };
        let (now, later) = rest.split_at(missing.min(rest.len()));
        *rest = later;
        grow(bytes, now.len(), missing);
        bytes.extend_from_slice(now);
        let scan = self.scanner.advance(now)?;
        Ok(self.end_filling(scan))
    }

    /// The block for the engine, when one is to be filled and is not with the engine yet.
    pub fn take_block(&mut self) -> Option<Block> {
        let Some(Filling::Here(bytes)) = &mut self.filling else { return None };
        let (_, missing) = self.scanner.body().filter(|(_, missing)| *missing >= Self::FILL_MIN)?;
        let mut bytes = std::mem::take(bytes);
        self.filling = Some(Filling::Away(bytes.len()));
        grow(&mut bytes, 1, missing);
        let room = bytes.capacity() - bytes.len();
        Some(Block::new(bytes, missing.min(room).min(Self::FILL_STEP)))
    }

    /// A block comes back. A frame that ends with it has to be [taken](Self::take_filled) or dropped.
    pub fn fill(&mut self, block: Block) -> Result<Option<Frame<'static>>, ProtocolError> {
        let Some(Filling::Away(before)) = self.filling else { return Ok(None) };
        let bytes = block.into_bytes();
        let before = before - usize::from(planted!(BlockOneOff) && before > 0);
        let scan = self.scanner.advance(&bytes[before..]);
        self.filling = Some(Filling::Here(bytes));
        Ok(self.end_filling(scan?))
    }

    /// Bytes came into the block: the string may be whole, and even the frame.
    fn end_filling(&mut self, scan: Scan) -> Option<Frame<'static>> {
        let kind = match scan {
            Scan::Incomplete if self.scanner.body().is_some() => return None,
            Scan::Incomplete => None,
            Scan::Complete { kind, .. } => Some(kind),
        };
        if let Some(Filling::Here(bytes)) = self.filling.take() {
            self.held.push(bytes.into());
        }
        kind.map(|kind| Frame { kind, glance: Glance::Unknown, bytes: &[] })
    }

    /// The bytes of a frame that [`fill`](Self::fill) gave.
    pub fn take_filled(&mut self, pool: Option<&BufferPool>, spares: &Spares) -> Payload {
        self.join(None, pool, spares)
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
            return self.join(Some(last), pool, spares);
        }
        if !may_hold(pool) {
            return spares.copy_of(&last, glance);
        }
        if planted!(HoldLeaked) {
            std::mem::forget(last.clone());
        }
        self.held.push(last);
        spares.held(&mut self.held, glance)
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
    fn keep(&mut self, mut rest: Segment, pool: Option<&BufferPool>) {
        let mut missing = self.scanner.wanted();
        if let Some((begun, lacking)) = self.scanner.body()
            && lacking >= Self::FILL_FROM
        {
            let before = rest.len() - begun.min(rest.len());
            let mut bytes = Vec::new();
            grow(&mut bytes, begun, begun + lacking);
            bytes.extend_from_slice(&rest[before..]);
            self.filling = Some(Filling::Here(bytes));
            // What stands before it, its head at least.
            rest = rest.slice(0..before);
            missing = 0;
        }
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
        // (A small piece would pin a buffer.)
        self.held.push(if rest.len() < HOLD_FROM { Segment::copy_of(&rest) } else { rest });
        if is_low(pool) && self.held.is_pooled() {
            self.spill();
        }
    }

    /// Moves what is held to the heap.
    fn spill(&mut self) {
        self.held.copy_to(&mut self.copied);
        self.held.clear();
    }

    /// The frame that `last` completes.
    fn join(&mut self, last: Option<Segment>, pool: Option<&BufferPool>, spares: &Spares) -> Payload {
        last.into_iter().for_each(|last| self.held.push(last));
        let total = self.copied.len() + self.held.len();
        if total < HOLD_FROM {
            self.spill();
            let payload = spares.copy_of(&self.copied, Glance::Unknown);
            self.copied.clear();
            return payload;
        }
        if self.copied.len() >= HOLD_FROM || self.held.is_pooled() && !may_hold(pool) {
            self.spill();
            self.held.push(std::mem::take(&mut self.copied).into());
        } else if !self.copied.is_empty() {
            self.held.push_front(Segment::copy_of(&self.copied));
            self.copied.clear();
        }
        spares.held(&mut self.held, Glance::Unknown)
    }
}

/// Room for `count` bytes more at least, of `missing`. Memory grows with what arrives, doubling at most, and never past what
/// was announced.
fn grow(bytes: &mut Vec<u8>, count: usize, missing: usize) {
    if bytes.capacity() - bytes.len() < count {
        bytes.reserve_exact(missing.min(bytes.len().max(Inbound::FILL_STEP)).max(count));
    }
}

/// Callers may hold at most half of the pool; beyond that replies are copied.
fn may_hold(pool: Option<&BufferPool>) -> bool {
    pool.is_none_or(|pool| pool.available() * 2 >= pool.count())
}

fn is_low(pool: Option<&BufferPool>) -> bool {
    pool.is_some_and(|pool| pool.available() * 4 < pool.count()) && !planted!(BuffersUsedUp)
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
    fn an_announced_length_takes_little_memory() {
        let pool = BufferPool::new(8, 4096);
        let mut inbound = inbound();
        assert!(feed(&mut inbound, &pool, b"$536870912\r\nabc", 4096).is_empty());
        let mut arrived = 3;
        // Slowly at first, then in large pieces.
        for piece in [1, 1000, 2_000_000, 100, 2_000_000, 2_000_000] {
            let mut block = inbound.take_block().expect("a block to fill");
            assert!(block.missing() <= Inbound::FILL_STEP);
            arrived += block.copy(&vec![7; piece]);
            let bytes = block.into_bytes();
            assert!(
                bytes.capacity() <= Inbound::FILL_STEP.max(2 * arrived),
                "{} for {arrived}",
                bytes.capacity()
            );
            assert!(inbound.fill(Block::new(bytes, 0)).expect("valid").is_none());
        }
        assert_eq!(pool.lent(), 0);
    }

    /// Feeds `stream`; whenever a block is wanted it gets the next bytes, at most `most` of them, but perhaps only after
    /// some that were on their way (`late` pieces).
    fn feed_blocks(
        pool: &BufferPool,
        stream: &[u8],
        piece: usize,
        most: usize,
        late: usize,
    ) -> (Vec<Payload>, usize) {
        let (mut inbound, spares) = (inbound(), Spares::default());
        let (mut frames, mut rest, mut blocks) = (Vec::new(), stream, 0);
        while !rest.is_empty() {
            for _ in 0..=late {
                let (part, later) = rest.split_at(piece.min(rest.len()));
                rest = later;
                if part.is_empty() {
                    continue;
                }
                let input = receive(pool, part);
                let mut left = &input[..];
                while let Some(frame) = inbound.next(&input, &mut left, Some(pool)).expect("valid") {
                    frames.push(inbound.take(frame, (&input, left), Some(pool), &spares));
                }
            }
            while let Some(mut block) = inbound.take_block() {
                assert!(inbound.take_block().is_none(), "one at a time");
                let came = most.min(block.missing()).min(rest.len());
                if came == 0 {
                    return (frames, blocks);
                }
                block.copy(&rest[..came]);
                rest = &rest[came..];
                blocks += 1;
                if inbound.fill(block).expect("valid").is_some() {
                    frames.push(inbound.take_filled(Some(pool), &spares));
                }
            }
        }
        (frames, blocks)
    }

    #[test]
    fn long_strings_fill_blocks() {
        let pool = BufferPool::new(64, 4096);
        let list = [
            b"*5\r\n".to_vec(),
            bulk(70_000, 1),
            bulk(3, 2),
            bulk(200_000, 3),
            bulk(5000, 4),
            bulk(90_000, 5),
        ];
        let expected = [
            bulk(65_000, 7),
            bulk(100_000, 8),
            b"+OK\r\n".to_vec(),
            bulk(3_000_000, 9),
            list.concat(),
            bulk(1 << 20, 10),
            bulk(2000, 11),
        ];
        let stream = expected.concat();
        for (piece, most, late) in [
            (4096, 1 << 21, 0),
            (4096, 100_000, 0),
            (4096, 100_000, 3),
            (1000, 7777, 1),
            (13, 50_000, 40),
            (3, 1 << 20, 0),
        ] {
            let (frames, blocks) = feed_blocks(&pool, &stream, piece, most, late);
            assert!(blocks >= 6, "{blocks} blocks");
            for (frame, expected) in frames.iter().zip(&expected) {
                assert!(bytes_of(frame) == *expected, "{} bytes, pieces of {piece}", expected.len());
            }
            assert_eq!(frames.len(), expected.len());
            drop(frames);
            assert_eq!(pool.lent(), 0);
        }
    }

    #[test]
    fn a_filled_string_can_be_taken() {
        use crate::resp::FromReply;
        let pool = BufferPool::new(64, 4096);
        let (len, text) = (300_000, "é".repeat(150_000));
        let stream = [format!("${len}\r\n{text}\r\n").repeat(4).into_bytes(), bulk(100_000, 1)].concat();
        let (frames, _) = feed_blocks(&pool, &stream, 4096, 1 << 20, 0);
        let [first, second, third, fourth, fifth] = frames.try_into().expect("five");
        let Parts::Segments([_, block]) = first.parts() else { panic!("a head and a block") };
        let address = block.as_ptr();
        let bytes = Vec::<u8>::from_payload(first).expect("a string");
        assert_eq!((bytes.as_ptr(), &bytes[..]), (address, text.as_bytes()));
        assert_eq!(String::from_payload(second).expect("text"), text);
        assert_eq!(bytes::Bytes::from_payload(third).expect("a string"), text);
        let blob = crate::resp::Blob::from_payload(fourth).expect("a string");
        assert_eq!(blob.as_slice(), Some(text.as_bytes()), "in one piece");
        assert!(Option::<String>::from_payload(fifth).is_err(), "bytes that are no text");
        assert_eq!(pool.lent(), 0);
    }

    #[test]
    fn an_idle_connection_pins_no_buffer() {
        let pool = BufferPool::new(8, 4096);
        let mut inbound = inbound();
        assert!(feed(&mut inbound, &pool, b"$3\r\nab", 4096).is_empty());
        assert_eq!(pool.lent(), 0);
    }

    /// A string of this kind and length.
    fn string(kind: &str, length: usize) -> Vec<u8> {
        let start: &[u8] = if kind == "=" { b"txt:" } else { b"" };
        let rest = (start.len()..length).map(|at| (at as u8).wrapping_mul(31));
        let bytes = start.iter().copied().chain(rest).collect();
        [format!("{kind}{length}\r\n").into_bytes(), bytes, b"\r\n".to_vec()].concat()
    }

    /// Whatever is large, wherever: strings of all kinds, attributes, pushes, streams; pieces and blocks of any size.
    #[test]
    fn random_streams_through_blocks_and_buffers() {
        let frames: [Vec<u8>; 11] = [
            b"+OK\r\n".to_vec(),
            b":1\r\n".to_vec(),
            string("$", 70_000),
            string("=", 80_000),
            string("!", 90_000),
            [&b"|1\r\n+k\r\n"[..], &string("$", 70_000), b"$5\r\nhello\r\n"].concat(),
            [&b"|1\r\n+k\r\n+v\r\n"[..], &string("$", 170_000)].concat(),
            [&b"$?\r\n"[..], &string(";", 100_000), &string(";", 7), &string(";", 200_000), b";0\r\n"]
                .concat(),
            [&b">3\r\n+message\r\n"[..], &string("$", 90_000), &string("$", 66_000)].concat(),
            [&b"*?\r\n"[..], &string("$", 90_000), b"*2\r\n", &string("=", 99_000), b":1\r\n.\r\n"].concat(),
            [&b"%1\r\n"[..], &string("$", 2000), &string("$", 1_500_000)].concat(),
        ];
        let mut seed = 12_345_u64;
        let mut dice = |sides: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % sides
        };
        let mut blocks = 0;
        for round in 0..40 {
            let pool = BufferPool::new(if round % 3 == 0 { 2 } else { 64 }, 16_384);
            let (mut inbound, spares) = (inbound(), Spares::default());
            inbound.set_resp3(true);
            let order: Vec<usize> = (0..14).map(|_| dice(frames.len())).collect();
            let stream: Vec<u8> = order.iter().flat_map(|index| &frames[*index]).copied().collect();
            let (mut rest, mut told) = (&stream[..], Vec::new());
            while !rest.is_empty() {
                let most = [3, 100, 4096, 16_384][dice(4)];
                let (part, later) = rest.split_at((1 + dice(most)).min(rest.len()));
                rest = later;
                let input = receive(&pool, part);
                let mut left = &input[..];
                while let Some(frame) = inbound.next(&input, &mut left, Some(&pool)).expect("valid") {
                    if dice(5) == 0 {
                        inbound.drop_frame();
                        told.push(None);
                    } else {
                        let payload = inbound.take(frame, (&input, left), Some(&pool), &spares);
                        told.push(Some((frame.kind, bytes_of(&payload))));
                    }
                }
                drop(input);
                // The engine may be asked late, and bring little.
                while dice(4) > 0
                    && !rest.is_empty()
                    && let Some(mut block) = inbound.take_block()
                {
                    let most = [3, 5000, 1 << 21][dice(3)];
                    let came = (1 + dice(most)).min(rest.len());
                    rest = &rest[block.copy(&rest[..came])..];
                    blocks += 1;
                    if let Some(frame) = inbound.fill(block).expect("valid") {
                        let payload = inbound.take_filled(Some(&pool), &spares);
                        told.push(Some((frame.kind, bytes_of(&payload))));
                    }
                }
            }
            assert_eq!(told.len(), order.len());
            for (told, index) in told.iter().zip(&order) {
                let Some((kind, bytes)) = told else { continue };
                assert!(*bytes == frames[*index], "frame {index}, round {round}");
                assert_eq!(*kind == FrameKind::Push, frames[*index][0] == b'>');
            }
            assert_eq!(pool.lent(), 0);
        }
        assert!(blocks > 1000, "{blocks} blocks");
    }
}
