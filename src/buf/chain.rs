//! The bytes of one reply, in order, possibly over several segments.

use super::segment::Segment;

/// Segments in order; never an empty one.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    segments: Vec<Segment>,
    len: usize,
}

impl Chain {
    /// Room for so many segments is kept for the next reply.
    const KEPT_MAX: usize = 64;

    /// Appends; an empty segment is dropped.
    pub fn push(&mut self, segment: Segment) {
        if !segment.is_empty() {
            self.len += segment.len();
            self.segments.push(segment);
        }
    }

    /// Puts a segment in front of all others.
    pub fn push_front(&mut self, segment: Segment) {
        if !segment.is_empty() {
            self.len += segment.len();
            self.segments.insert(0, segment);
        }
    }

    /// All bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without any byte.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The bytes of the last of several segments, when nobody else has them; see [`Segment::take_vec`].
    pub fn take_last(&mut self) -> Option<Vec<u8>> {
        let bytes = self.segments.last_mut()?.take_vec()?;
        self.segments.pop();
        self.len -= bytes.len();
        Some(bytes)
    }

    /// Drops everything, but not the room for a few segments.
    pub fn clear(&mut self) {
        self.len = 0;
        match self.segments.capacity() <= Self::KEPT_MAX {
            true => self.segments.clear(),
            false => self.segments = Vec::new(),
        }
    }

    /// Copies all bytes to the end of `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        for segment in self.segments() {
            out.extend_from_slice(segment);
        }
    }

    /// True when a part refers to a pool's buffer.
    pub fn is_pooled(&self) -> bool {
        self.segments().iter().any(Segment::is_pooled)
    }
}

impl From<Segment> for Chain {
    fn from(segment: Segment) -> Self {
        let mut chain = Chain::default();
        chain.push(segment);
        chain
    }
}
