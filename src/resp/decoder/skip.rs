//! Passing over values without reading them.

use super::{Decoder, Head, broken};
use crate::error::ConversionError;
use crate::resp::stack::Level;
use smallvec::SmallVec;

impl Decoder<'_> {
    /// Passes one value with all that is inside of it, and the attributes in front of it.
    ///
    /// # Errors
    /// See [`token`](Self::token).
    pub fn skip_value(&mut self) -> Result<(), ConversionError> {
        self.skip_level(Level::of(1))
    }

    /// Passes values until `level` is complete.
    pub(super) fn skip_level(&mut self, level: Level) -> Result<(), ConversionError> {
        if level.left == 0 {
            return Ok(());
        }
        let mut stack: SmallVec<[Level; 8]> = SmallVec::new();
        stack.push(level);
        loop {
            // A value without children ends with its head, unless the match says otherwise.
            match self.any_head()? {
                Head::String(_, len) => {
                    self.pass(len)?;
                    self.end_string()?;
                }
                Head::Chunks => {
                    while let Some(len) = self.chunk()? {
                        self.pass(len)?;
                        self.end_string()?;
                    }
                }
                Head::Aggregate(b'|', Some(0)) => continue,
                Head::Aggregate(kind, Some(count)) if count > 0 => {
                    let pairs = matches!(kind, b'%' | b'|');
                    let left = if pairs { count.saturating_mul(2).min(u64::MAX - 1) } else { count };
                    stack.push(if kind == b'|' { Level::attribute(left) } else { Level::of(left) });
                    continue;
                }
                Head::Aggregate(_, None) => {
                    stack.push(Level::stream(false));
                    continue;
                }
                Head::End => match stack.pop() {
                    Some(level) if level.is_stream() => {}
                    _ => return Err(broken()),
                },
                _ => {}
            }
            loop {
                let Some(level) = stack.last_mut() else { return Ok(()) };
                if !level.count_one() {
                    break;
                }
                let attribute = level.attribute;
                stack.pop();
                if attribute {
                    // The value it describes is still to come, or was asked not to be passed.
                    if stack.is_empty() {
                        return Ok(());
                    }
                    break;
                }
            }
        }
    }
}
