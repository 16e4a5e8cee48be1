//! What the bytes mean: types, lengths, the open aggregates, and the ends of values.

use super::fault::{malformed, over, unexpected};
use super::{FrameKind, Scanner, State};
use crate::error::ProtocolError;
use crate::resp::number;
use crate::resp::stack::Level;

impl Scanner {
    /// A value of this type begins here.
    #[inline]
    pub(super) fn begin_value(&mut self, kind: u8) -> Result<(), ProtocolError> {
        match kind {
            b'+' | b'-' | b':' | b'$' | b'*' => {}
            b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>' | b'|' | b'.' => {
                if !self.resp3 {
                    return Err(unexpected(kind, "on a RESP2 connection"));
                }
            }
            _ => return Err(unexpected(kind, "where a value begins")),
        }
        match self.stack.last() {
            None => match kind {
                b'-' | b'!' => self.error = true,
                b'>' => self.kind = FrameKind::Push,
                _ => {}
            },
            Some(_) if kind == b'>' => return Err(ProtocolError::new("a push inside another value")),
            Some(level) if level.is_stream() && kind != b'.' => self.announce(1)?,
            Some(_) => {}
        }
        Ok(())
    }

    /// Counts elements that must come.
    fn announce(&mut self, count: u64) -> Result<(), ProtocolError> {
        self.elements = self.elements.saturating_add(count);
        if self.elements > self.limits.elements_max as u64 {
            return Err(over("elements", self.limits.elements_max));
        }
        Ok(())
    }

    pub(super) fn read_line(&mut self, kind: u8, line: &[u8], taken: usize) -> Result<bool, ProtocolError> {
        let fits = match kind {
            b'+' | b'-' => true,
            b':' => number::signed(line).is_some(),
            b'_' => line.is_empty(),
            b'#' => matches!(line, b"t" | b"f"),
            b',' => number::is_double(line),
            b'(' => number::is_integer(line),
            b'$' | b'!' | b'=' => return self.begin_string(kind, line, taken),
            b';' => return self.begin_chunk(line, taken),
            b'.' => return self.end_stream(line),
            _ => return self.begin_aggregate(kind, line),
        };
        if !fits {
            return Err(malformed(kind));
        }
        Ok(self.end_value())
    }

    fn begin_string(&mut self, kind: u8, line: &[u8], taken: usize) -> Result<bool, ProtocolError> {
        match line {
            b"-1" if kind == b'$' => return Ok(self.end_value()),
            b"?" if kind == b'$' && self.resp3 => {
                self.streamed = Some(0);
                self.state = State::Chunk;
                return Ok(false);
            }
            _ => {}
        }
        let Some(len) = number::unsigned(line) else { return Err(malformed(kind)) };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let complete = self.begin_body(len, taken)?;
        if kind == b'=' {
            if len < 4 {
                return Err(ProtocolError::new("a verbatim string without a three-letter format"));
            }
            self.state = State::Prefix { seen: 0, left: len + 2 };
        }
        Ok(complete)
    }

    /// A string of this length begins.
    pub(super) fn begin_body(&mut self, len: usize, taken: usize) -> Result<bool, ProtocolError> {
        self.check_string(len, 0, taken)?;
        self.body = len + 2;
        self.state = State::Body(len + 2);
        Ok(false)
    }

    /// Checks the announced length of a string, of which `before` bytes came already, against the limits.
    fn check_string(&self, len: usize, before: usize, taken: usize) -> Result<(), ProtocolError> {
        if before.saturating_add(len) > self.limits.bulk_max {
            return Err(over("bulk", self.limits.bulk_max));
        }
        self.check_frame(taken.saturating_add(len).saturating_add(2))
    }

    fn begin_chunk(&mut self, line: &[u8], taken: usize) -> Result<bool, ProtocolError> {
        let before = self.streamed.unwrap_or(0);
        let Some(len) = number::unsigned(line) else { return Err(malformed(b';')) };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.check_string(len, before, taken)?;
        if len == 0 {
            self.streamed = None;
            return Ok(self.end_value());
        }
        self.streamed = Some(before + len);
        self.body = len + 2;
        self.state = State::Body(len + 2);
        Ok(false)
    }

    /// Checks those of the last two bytes of a body that lie in `part`, of `left` bytes that were missing.
    #[inline]
    pub(super) fn check_body_end(&self, left: usize, part: &[u8]) -> Result<(), ProtocolError> {
        // The CR stands at `left - 2`, the LF at `left - 1`; a part may hold neither, one or both.
        let cr = if left >= 2 { part.get(left - 2) } else { None };
        let lf = part.get(left - 1);
        if cr.is_some_and(|&byte| byte != b'\r') || lf.is_some_and(|&byte| byte != b'\n') {
            return Err(ProtocolError::new("a string is longer than its announced length"));
        }
        Ok(())
    }

    pub(super) fn end_body(&mut self) -> bool {
        if self.streamed.is_some() {
            self.state = State::Chunk;
            return false;
        }
        self.state = State::Type;
        self.end_value()
    }

    fn begin_aggregate(&mut self, kind: u8, line: &[u8]) -> Result<bool, ProtocolError> {
        if line == b"-1" && kind == b'*' {
            return Ok(self.end_value());
        }
        if line == b"?" && self.resp3 && matches!(kind, b'*' | b'%' | b'~') {
            self.check_depth()?;
            self.described = false;
            self.stack.push(Level::stream(kind == b'%'));
            return Ok(false);
        }
        let Some(count) = number::unsigned(line) else { return Err(malformed(kind)) };
        self.open_aggregate(kind, count)
    }

    fn check_depth(&self) -> Result<(), ProtocolError> {
        if self.stack.len() >= self.limits.depth_max {
            return Err(over("depth", self.limits.depth_max));
        }
        Ok(())
    }

    /// An aggregate of so many elements or pairs begins.
    pub(super) fn open_aggregate(&mut self, kind: u8, count: u64) -> Result<bool, ProtocolError> {
        self.check_depth()?;
        let count = if matches!(kind, b'%' | b'|') { count.saturating_mul(2) } else { count };
        // An attribute is an element too, or `|0` could be repeated for ever.
        self.announce(count.saturating_add(u64::from(kind == b'|')))?;
        match (kind, count) {
            (b'|', 0) => {
                self.described = true;
                Ok(false)
            }
            (_, 0) => Ok(self.end_value()),
            _ => {
                self.described = false;
                self.stack.push(if kind == b'|' { Level::attribute(count) } else { Level::of(count) });
                Ok(false)
            }
        }
    }

    fn end_stream(&mut self, line: &[u8]) -> Result<bool, ProtocolError> {
        if !line.is_empty() {
            return Err(malformed(b'.'));
        }
        match self.stack.last() {
            Some(level) if level.is_stream() => {
                if level.odd {
                    return Err(ProtocolError::new("a streamed map ends after a key"));
                }
                if self.described {
                    return Err(ProtocolError::new("an attribute without a value"));
                }
                self.stack.pop();
                Ok(self.end_value())
            }
            _ => Err(unexpected(b'.', "outside a streamed aggregate")),
        }
    }

    /// Counts one complete value, and the aggregates that end with it; true when the frame is complete.
    #[inline]
    pub(super) fn end_value(&mut self) -> bool {
        self.described = false;
        while let Some(level) = self.stack.last_mut() {
            if !level.count_one() {
                return false;
            }
            let attribute = level.attribute;
            self.stack.pop();
            if attribute {
                self.described = true;
                return false;
            }
        }
        true
    }
}
