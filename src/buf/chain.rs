//! The bytes of one reply, in order, possibly over several segments.

use super::segment::Segment;
use smallvec::SmallVec;

/// Segments in order; never an empty one.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    segments: SmallVec<[Segment; 1]>,
    len: usize,
}

impl Chain {
    /// Appends; an empty segment is dropped.
    pub fn push(&mut self, segment: Segment) {
        if !segment.is_empty() {
            self.len += segment.len();
            self.segments.push(segment);
        }
    }

    /// All bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without any byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segments, given away.
    pub fn into_segments(self) -> impl Iterator<Item = Segment> {
        self.segments.into_iter()
    }

    /// The bytes when they lie in one piece.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.segments[..] {
            [] => Some(&[]),
            [one] => Some(one),
            _ => None,
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.len = 0;
    }

    /// Copies all bytes to the end of `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len);
        for segment in &self.segments {
            out.extend_from_slice(segment);
        }
    }

    /// True when a part refers to a pool's buffer.
    pub fn is_pooled(&self) -> bool {
        self.segments.iter().any(Segment::is_pooled)
    }
}

impl From<Segment> for Chain {
    fn from(segment: Segment) -> Self {
        let mut chain = Chain::default();
        chain.push(segment);
        chain
    }
}
