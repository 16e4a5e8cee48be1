//! Where a frame ends.
//!
//! Bytes arrive in pieces of any size and the end of a reply must be found without building it and without starting
//! over when the next piece comes. The scanner is a small machine: what the next byte belongs to ([`State`]), the open
//! aggregates around it (an explicit stack, kept between frames), and the part of a number's line that was cut off by
//! the end of a piece. Bodies of strings are skipped by their length. Everything is validated here, once, so that the
//! decoder may trust the shape of what it reads.
//!
//! Work is linear in the bytes: those of a body are not looked at at all, those of a line are searched once. Only the
//! front of a value, 25 bytes at most, is tried without the machine first, which is all that a short one needs when it
//! lies whole in a piece; where that fails (once per piece) the machine looks at it again.

mod fault;
mod leaf;
mod value;

use super::limits::Limits;
use super::number;
use super::stack::Level;
use crate::buf::Glance;
use crate::error::ProtocolError;
use fault::{over, unexpected};
use leaf::leaf;
use memchr::memchr2;

/// What a complete frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// The reply to a command.
    Reply,
    /// A RESP3 push: it answers no command.
    Push,
}

/// The result of [`Scanner::advance`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The frame ends after the first `consumed` of the bytes given; the rest belongs to the next one.
    Complete {
        /// Bytes of the argument that belong to the frame.
        consumed: usize,
        /// Of the value after any leading attributes.
        kind: FrameKind,
        /// The reply is an error (`-` or `!`).
        error: bool,
        /// What it is, when it lies whole in these bytes and that was seen in passing.
        glance: Glance,
    },
    /// All bytes were taken and more must come.
    Incomplete,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The next byte is a type byte.
    Type,
    /// Inside the line of a value of this type.
    Line(u8),
    /// So many bytes of a string are missing, its line end included.
    Body(usize),
    /// Inside the `txt:` of a verbatim string.
    Prefix { seen: usize, left: usize },
    /// The next byte is the `;` of a streamed string's chunk.
    Chunk,
}

/// Finds the ends of frames in a stream of bytes. For the core without I/O; users of a client never meet it.
///
/// Decisions where RESP3 leaves room: an attribute belongs to the value that follows it, also when that is a push;
/// `>?` and `|?` are refused (the specification streams arrays, sets and maps only); `$-1` and `*-1` are null under
/// either protocol; a lone CR or LF inside a line is an error.
///
/// ```
/// use respiral::resp::{FrameKind, Limits, Scan, Scanner};
/// let mut scanner = Scanner::new(Limits::default(), true);
/// assert_eq!(scanner.advance(b"$5\r\nhel")?, Scan::Incomplete);
/// assert_eq!((scanner.len(), scanner.wanted()), (7, 4));
/// let end = scanner.advance(b"lo\r\n+OK\r\n")?;
/// assert!(matches!(end, Scan::Complete { consumed: 4, kind: FrameKind::Reply, error: false, .. }));
/// # Ok::<(), respiral::error::ProtocolError>(())
/// ```
pub struct Scanner {
    /// Bytes of the current frame before this call; zero exactly between frames.
    len: usize,
    /// A bulk up to this size is within every limit, whatever its header.
    leaf_max: usize,
    resp3: bool,
    state: State,
    kind: FrameKind,
    error: bool,
    /// The line's CR was the last byte.
    cr: bool,
    /// An attribute is complete and its value has not begun.
    described: bool,
    /// Bytes of the current line so far, without its end.
    line_len: usize,
    /// Length of the string that is open, its line end included.
    body: usize,
    /// Bytes of the streamed string that is open.
    streamed: Option<usize>,
    /// Elements announced or, in streams, begun.
    elements: u64,
    stack: Vec<Level>,
    /// The part of a line that came before, for types whose line is read. At most `line_max` bytes.
    held: Vec<u8>,
    limits: Limits,
    /// Bytes and steps spent, to prove linearity without a clock.
    #[cfg(test)]
    pub(super) work: u64,
}

/// No integer or length is longer: a sign, 20 digits, and some leading zeros.
const NUMBER_LINE_MAX: usize = 32;

impl Scanner {
    /// A scanner for a connection that speaks RESP3 (`resp3`) or RESP2, where RESP3's own types are errors.
    pub fn new(limits: Limits, resp3: bool) -> Self {
        let limits = Limits {
            depth_max: limits.depth_max.min(Limits::DEPTH_CEILING),
            // `leaf` accepts lines up to this.
            line_max: limits.line_max.max(NUMBER_LINE_MAX),
            // The largest count stands for a stream.
            elements_max: limits.elements_max.min(usize::MAX - 1),
            ..limits
        };
        Self {
            len: 0,
            leaf_max: limits.bulk_max.min(limits.frame_max.saturating_sub(32)),
            resp3,
            state: State::Type,
            kind: FrameKind::Reply,
            error: false,
            cr: false,
            described: false,
            line_len: 0,
            body: 0,
            streamed: None,
            elements: 0,
            stack: Vec::new(),
            held: Vec::new(),
            limits,
            #[cfg(test)]
            work: 0,
        }
    }

    /// The connection changes its protocol. The reply to `HELLO 3` is RESP3 already: call this before it can arrive, and
    /// again when the server refused.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// Bytes of the current frame so far; 0 between frames.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True between frames.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The string that is open: how much of it has come, and how much is missing, its line end included. So a large
    /// one can be received into memory of its own. A peer announced it: no reason to allocate so much at once.
    pub fn body(&self) -> Option<(usize, usize)> {
        match self.state {
            State::Body(left) => Some((self.body - left, left)),
            _ => None,
        }
    }

    /// A lower bound of the bytes that the current frame still lacks; 0 between frames. Inside a string it is exact for
    /// that string.
    pub fn wanted(&self) -> usize {
        match self.state {
            State::Type if self.len == 0 => 0,
            State::Type => 3,
            State::Line(_) => 2 - usize::from(self.cr),
            State::Body(left) => left,
            State::Prefix { left, .. } => left,
            State::Chunk => 4,
        }
    }

    /// Forgets the current frame, for a new connection or after an error.
    pub fn reset(&mut self) {
        self.begin_frame();
        self.state = State::Type;
        self.stack.clear();
        self.held.clear();
        self.cr = false;
        self.line_len = 0;
        self.streamed = None;
    }

    fn begin_frame(&mut self) {
        self.len = 0;
        self.elements = 0;
        self.kind = FrameKind::Reply;
        self.error = false;
        self.described = false;
    }

    /// Takes the next bytes of the stream, up to the end of the current frame.
    ///
    /// # Errors
    /// The bytes are not RESP or exceed a limit. The position in the stream is lost then: close the connection, or
    /// [`reset`](Self::reset) for another one.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Scan, ProtocolError> {
        if let Some((frame, glance)) = self.peek_leaf(bytes) {
            return Ok(Scan::Complete {
                consumed: frame.len(),
                kind: FrameKind::Reply,
                error: false,
                glance,
            });
        }
        self.resume(bytes)
    }

    /// The frame at the front and what it is, when it is short and lies whole in `bytes`; nothing is taken.
    #[inline(always)]
    pub(crate) fn peek_leaf<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], Glance)> {
        if self.len > 0 {
            return None;
        }
        let (consumed, glance) = leaf(bytes, self.leaf_max)?;
        Some((bytes.get(..consumed)?, glance))
    }

    #[inline(never)]
    fn resume(&mut self, bytes: &[u8]) -> Result<Scan, ProtocolError> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            #[cfg(test)]
            self.count_work(rest);
            let complete = match self.state {
                State::Type => {
                    let taken = self.take_leaves(rest);
                    if taken > 0 {
                        at += taken;
                        continue;
                    }
                    let kind = rest[0];
                    self.begin_value(kind)?;
                    if matches!(kind, b'$' | b'*' | b'%' | b'~' | b'>' | b'|')
                        && let Some((count, used)) = number::length_line(&rest[1..])
                    {
                        at += 1 + used;
                        match kind {
                            b'$' => self.begin_body(count, at)?,
                            _ => self.open_aggregate(kind, count as u64)?,
                        }
                    } else if let Some((used, _)) = leaf(rest, self.leaf_max) {
                        at += used;
                        self.end_value()
                    } else {
                        self.state = State::Line(kind);
                        at += 1;
                        false
                    }
                }
                State::Line(kind) => match self.find_line_end(kind, rest)? {
                    None => {
                        at = bytes.len();
                        false
                    }
                    Some((content, used)) => {
                        at += used;
                        self.state = State::Type;
                        self.end_line(kind, &rest[..content], at)?
                    }
                },
                State::Body(left) => {
                    let used = left.min(rest.len());
                    self.check_body_end(left, &rest[..used])?;
                    at += used;
                    if used < left {
                        self.state = State::Body(left - used);
                        false
                    } else {
                        self.end_body()
                    }
                }
                State::Prefix { seen, left } => {
                    let right = if seen < 3 { rest[0].is_ascii_alphanumeric() } else { rest[0] == b':' };
                    if !right {
                        return Err(ProtocolError::new("a verbatim string without a three-letter format"));
                    }
                    at += 1;
                    self.state = match seen {
                        3 => State::Body(left - 1),
                        _ => State::Prefix { seen: seen + 1, left: left - 1 },
                    };
                    false
                }
                State::Chunk => {
                    if rest[0] != b';' {
                        return Err(unexpected(rest[0], "in a streamed string"));
                    }
                    self.state = State::Line(b';');
                    at += 1;
                    false
                }
            };
            if complete {
                self.check_frame(at)?;
                let scan = Scan::Complete {
                    consumed: at,
                    kind: self.kind,
                    error: self.error,
                    glance: Glance::Unknown,
                };
                self.begin_frame();
                return Ok(scan);
            }
        }
        self.check_frame(at)?;
        self.len += at;
        Ok(Scan::Incomplete)
    }

    /// Takes short values inside an aggregate, except its last: lists of them are most of what is not a single string.
    #[inline]
    fn take_leaves(&mut self, bytes: &[u8]) -> usize {
        let Some(level) = self.stack.last_mut() else { return 0 };
        let mut at = 0;
        if !level.is_stream() {
            while level.left > 1
                && let Some((used, _)) = leaf(&bytes[at..], self.leaf_max)
            {
                at += used;
                level.left -= 1;
                self.described = false;
                #[cfg(test)]
                {
                    self.work += used.min(25) as u64;
                }
            }
        }
        at
    }

    /// Bytes of heap.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.stack.capacity() * size_of::<Level>() + self.held.capacity()
    }

    #[cfg(test)]
    fn count_work(&mut self, rest: &[u8]) {
        self.work += 1;
        self.work += match self.state {
            // What `leaf` may look at.
            State::Type if matches!(rest[0], b'$' | b':' | b'+') => rest.len().min(25) as u64,
            State::Line(_) => memchr2(b'\r', b'\n', rest).map_or(rest.len(), |at| at + 2) as u64,
            _ => 1,
        };
    }

    fn check_frame(&self, taken: usize) -> Result<(), ProtocolError> {
        if self.len.saturating_add(taken) > self.limits.frame_max {
            return Err(over("frame size", self.limits.frame_max));
        }
        Ok(())
    }

    /// Finds the end of the line: the bytes of content and the bytes used. What lies before the end of a piece is held.
    fn find_line_end(&mut self, kind: u8, rest: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
        if self.cr {
            if rest[0] != b'\n' {
                return Err(ProtocolError::new("CR without LF in a line"));
            }
            self.cr = false;
            return Ok(Some((0, 1)));
        }
        let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        self.line_len += end;
        let max = match kind {
            b'+' | b'-' | b'(' | b',' => self.limits.line_max,
            _ => NUMBER_LINE_MAX,
        };
        // Before the line's end is looked at, so that the same error comes whatever the pieces.
        if self.line_len > max {
            return Err(over("line", max));
        }
        match rest.get(end..) {
            Some([b'\r', b'\n', ..]) => return Ok(Some((end, end + 2))),
            Some([b'\r']) => self.cr = true,
            Some([b'\r', ..]) => return Err(ProtocolError::new("CR without LF in a line")),
            Some([_, ..]) => return Err(ProtocolError::new("LF without CR in a line")),
            _ => {}
        }
        if !matches!(kind, b'+' | b'-') {
            self.held.extend_from_slice(&rest[..end]);
        }
        Ok(None)
    }

    /// The line of a value is complete; true when the frame is.
    fn end_line(&mut self, kind: u8, tail: &[u8], taken: usize) -> Result<bool, ProtocolError> {
        self.line_len = 0;
        if self.held.is_empty() {
            return self.read_line(kind, tail, taken);
        }
        // Taken out and put back: the capacity stays.
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(tail);
        let complete = self.read_line(kind, &held, taken);
        held.clear();
        self.held = held;
        complete
    }
}

impl std::fmt::Debug for Scanner {
    /// No bytes: the content is the user's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanner")
            .field("resp3", &self.resp3)
            .field("state", &self.state)
            .field("len", &self.len)
            .field("depth", &self.stack.len())
            .finish_non_exhaustive()
    }
}
