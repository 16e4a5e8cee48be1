//! Short values that lie whole in a piece: the way of nearly every reply.

use crate::buf::Glance;
use crate::resp::number;

/// The length of a short value that lies whole at the start of `bytes`, and what it is; `None` sends it to the machine.
#[inline(always)]
pub(super) fn leaf(bytes: &[u8], max: usize) -> Option<(usize, Glance)> {
    match *bytes.first()? {
        b'$' => {
            let (len, used) = number::length_line(&bytes[1..])?;
            if len > max {
                return None;
            }
            let end = 1 + used + len;
            match bytes.get(end..end + 2)? {
                b"\r\n" => Some((end + 2, Glance::Text(1 + used as u64))),
                _ => None,
            }
        }
        b':' => number::integer_line(bytes).map(|(value, used)| (used, Glance::Integer(value))),
        b'+' => {
            if bytes.starts_with(b"+OK\r\n") {
                return Some((5, Glance::Ok));
            }
            let mut at = 1;
            loop {
                match *bytes.get(at)? {
                    b'\r' => break,
                    b'\n' => return None,
                    _ => at += 1,
                }
                if at > 24 {
                    return None;
                }
            }
            (*bytes.get(at + 1)? == b'\n').then_some((at + 2, Glance::Unknown))
        }
        _ => None,
    }
}
