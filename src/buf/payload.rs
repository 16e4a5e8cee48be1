//! Where the bytes of a complete reply wait for their caller.
//!
//! A payload is handed on many times between the parser and the caller, so it is two words: a node that holds the
//! bytes, and the list to which the node goes back. (As a struct of its parts it cost 30 % of a command at 512 callers:
//! every move copies in wide loads what was just written in narrow stores, and the processor waits.)

use super::chain::Chain;
use super::segment::Segment;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// Replies below this many bytes are copied into the node, 4 to 23 ns; larger ones are held where they arrived, since a
/// kept byte pins a whole receive buffer (H21).
pub const HOLD_FROM: usize = 1024;

/// What the parser saw of a reply in passing, so that the one who converts it need not parse again. A tag and a word, so
/// that it travels in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glance {
    /// Nothing: it may be anything.
    Unknown,
    /// One string, which begins at this offset and ends before the last line end.
    Text(u64),
    /// All bytes are the string, without a head and a line end.
    Bare,
    /// One integer.
    Integer(i64),
    /// `+OK`.
    Ok,
}

struct Node {
    /// The next spare one, while this one is spare.
    next: Option<Box<Node>>,
    /// How many of `bytes` there are; 0 when the reply is held.
    len: usize,
    glance: Glance,
    held: Chain,
    /// Grows to what small replies need, at most [`HOLD_FROM`].
    bytes: Box<[u8]>,
}

impl Node {
    #[cold]
    #[inline(never)]
    fn new() -> Box<Self> {
        Box::new(Node {
            next: None,
            len: 0,
            glance: Glance::Unknown,
            held: Chain::default(),
            bytes: Box::default(),
        })
    }

    /// Takes `bytes` that do not fit.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: &[u8]) {
        if bytes.len() > HOLD_FROM {
            (self.held, self.len) = (Segment::copy_of(bytes).into(), 0);
            return;
        }
        self.bytes = vec![0; bytes.len().next_power_of_two().max(128)].into();
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
    }
}

/// Spare nodes for replies, so that the steady state allocates nothing. A cheap handle; `!Send`.
#[derive(Clone, Default)]
pub struct Spares(Rc<List>);

#[derive(Default)]
struct List {
    first: Cell<Option<Box<Node>>>,
    len: Cell<usize>,
}

impl List {
    /// A spare node, whose last contents are still there.
    #[inline(always)]
    fn take(&self) -> Box<Node> {
        let Some(mut node) = self.first.take() else { return Node::new() };
        // (What these replace is `None`; forgotten, it needs no look at it.)
        std::mem::forget(self.first.replace(node.next.take()));
        self.len.set(self.len.get() - 1);
        node
    }

    #[inline(always)]
    fn give(&self, mut node: Box<Node>) {
        if self.len.get() < Spares::MAX {
            self.len.set(self.len.get() + 1);
            std::mem::forget(std::mem::replace(&mut node.next, self.first.take()));
            std::mem::forget(self.first.replace(Some(node)));
        }
    }
}

impl Drop for List {
    /// One after the other: nodes that drop their followers would use up the stack.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

impl Spares {
    /// At most this many wait, a kibibyte each or less.
    const MAX: usize = 4096;

    #[inline(always)]
    fn payload(&self, node: Box<Node>) -> Payload {
        Payload { node: ManuallyDrop::new(node), home: Some(self.clone()) }
    }

    /// A reply of a copy of `bytes`; on the heap when they are many.
    #[inline(always)]
    pub fn copy_of(&self, bytes: &[u8], glance: Glance) -> Payload {
        let mut node = self.0.take();
        node.glance = glance;
        match node.bytes.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                node.len = bytes.len();
            }
            None => node.grow(bytes),
        }
        self.payload(node)
    }

    /// A reply that stays where it is. `chain` is empty then, with the room of an earlier one: nothing is allocated.
    pub fn held(&self, chain: &mut Chain, glance: Glance) -> Payload {
        let mut node = self.0.take();
        std::mem::swap(&mut node.held, chain);
        (node.len, node.glance) = (0, glance);
        self.payload(node)
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.0.len.get()
    }
}

/// The bytes of one reply: copied when small, held where they arrived when large.
pub struct Payload {
    /// There until it is dropped.
    node: ManuallyDrop<Box<Node>>,
    /// Where the node goes then.
    home: Option<Spares>,
}

/// How a reply lies in memory.
#[derive(Clone, Copy)]
pub enum Parts<'a> {
    /// In one piece.
    Whole(&'a [u8]),
    /// Over these, in order.
    Segments(&'a [Segment]),
}

impl Payload {
    /// A part of a larger reply, or bytes that were made of one.
    pub fn part(chain: Chain, glance: Glance) -> Self {
        let mut node = Node::new();
        (node.held, node.glance) = (chain, glance);
        Payload { node: ManuallyDrop::new(node), home: None }
    }

    /// The bytes, as they lie.
    #[inline]
    pub fn parts(&self) -> Parts<'_> {
        match self.node.held.is_empty() {
            true => Parts::Whole(&self.node.bytes[..self.node.len]),
            false => Parts::Segments(self.node.held.segments()),
        }
    }

    /// Notes what is known of the reply.
    #[inline(always)]
    pub fn set_glance(&mut self, glance: Glance) {
        self.node.glance = glance;
    }

    /// Where its node came from: there are others.
    pub fn home(&self) -> Option<&Spares> {
        self.home.as_ref()
    }

    /// What is known of the reply.
    #[inline(always)]
    pub fn glance(&self) -> Glance {
        self.node.glance
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        match self.node.len {
            0 => self.node.held.len(),
            len => len,
        }
    }

    /// True without any byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the last of several pieces out, when it is a heap block that nobody else refers to.
    pub fn take_last(&mut self) -> Option<Vec<u8>> {
        self.node.held.take_last()
    }

    /// The bytes when they lie in one piece.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self.parts() {
            Parts::Whole(bytes) => Some(bytes),
            Parts::Segments([one]) => Some(one),
            Parts::Segments(_) => None,
        }
    }
}

impl Drop for Payload {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: a value is dropped once, and nothing looks at its node after that.
        let node = unsafe { ManuallyDrop::take(&mut self.node) };
        match &self.home {
            Some(Spares(list)) if node.held.is_empty() => list.give(node),
            home => give_held(node, home),
        }
    }
}

#[cold]
#[inline(never)]
fn give_held(mut node: Box<Node>, home: &Option<Spares>) {
    node.held.clear();
    if let Some(Spares(list)) = home {
        list.give(node);
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(size_of::<Option<Payload>>() == 16);

    #[test]
    fn nodes_are_used_again_and_keep_nothing() {
        let spares = Spares::default();
        let first = spares.copy_of(b"one", Glance::Unknown);
        assert_eq!(first.as_slice(), Some(&b"one"[..]));
        drop(first);
        assert_eq!(spares.waiting(), 1);
        let held = spares.held(&mut Segment::copy_of(b"held").into(), Glance::Unknown);
        assert_eq!((held.as_slice(), held.len(), spares.waiting()), (Some(&b"held"[..]), 4, 0));
        drop(held);
        let second = spares.copy_of(b"", Glance::Unknown);
        assert_eq!((second.as_slice(), second.len()), (Some(&b""[..]), 0));
    }

    #[test]
    fn many_bytes_go_to_the_heap() {
        let spares = Spares::default();
        for len in [HOLD_FROM - 1, HOLD_FROM, HOLD_FROM + 1, 10 * HOLD_FROM] {
            let bytes = vec![7; len];
            assert_eq!(spares.copy_of(&bytes, Glance::Unknown).as_slice(), Some(&bytes[..]));
        }
    }
}
