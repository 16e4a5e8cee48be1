//! The bytes of one reply, in order, possibly over several segments.

use super::segment::Segment;

/// Segments in order; never an empty one. Small itself, since it travels with every reply.
#[derive(Clone, Default, Debug)]
pub struct Chain(Parts);

#[derive(Clone, Default, Debug)]
enum Parts {
    #[default]
    None,
    One(Segment),
    /// Two or more, and their total length.
    Many(Box<(Vec<Segment>, usize)>),
}

impl Chain {
    /// Appends; an empty segment is dropped.
    pub fn push(&mut self, segment: Segment) {
        if segment.is_empty() {
            return;
        }
        self.0 = match std::mem::take(&mut self.0) {
            Parts::None => Parts::One(segment),
            Parts::One(first) => {
                let len = first.len() + segment.len();
                Parts::Many(Box::new((vec![first, segment], len)))
            }
            Parts::Many(mut many) => {
                many.1 += segment.len();
                many.0.push(segment);
                Parts::Many(many)
            }
        };
    }

    /// All bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Parts::None => 0,
            Parts::One(segment) => segment.len(),
            Parts::Many(many) => many.1,
        }
    }

    /// True without any byte.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Parts::None)
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        match &self.0 {
            Parts::None => &[],
            Parts::One(segment) => std::slice::from_ref(segment),
            Parts::Many(many) => &many.0,
        }
    }

    /// The segments, given away.
    pub fn into_segments(self) -> impl Iterator<Item = Segment> {
        let (one, many) = match self.0 {
            Parts::None => (None, Vec::new()),
            Parts::One(segment) => (Some(segment), Vec::new()),
            Parts::Many(many) => (None, many.0),
        };
        one.into_iter().chain(many)
    }

    /// The bytes when they lie in one piece.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.0 {
            Parts::None => Some(&[]),
            Parts::One(segment) => Some(segment),
            Parts::Many(_) => None,
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.0 = Parts::None;
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
