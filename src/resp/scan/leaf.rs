//! Short values that lie whole in a piece: the way of nearly every reply.

use crate::resp::number;

/// The length of a short value that lies whole at the start of `bytes`, and where its text begins if it is a bulk string
/// (else 0); `None` sends it to the machine.
#[inline(always)]
pub(super) fn leaf(bytes: &[u8], max: usize) -> Option<(usize, usize)> {
    match *bytes.first()? {
        b'$' => {
            let (len, used) = number::length_line(&bytes[1..])?;
            if len > max {
                return None;
            }
            let end = 1 + used + len;
            match bytes.get(end..end + 2)? {
                b"\r\n" => Some((end + 2, 1 + used)),
                _ => None,
            }
        }
        b':' => number::integer_line(bytes).map(|(_, used)| (used, 0)),
        b'+' => {
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
            (*bytes.get(at + 1)? == b'\n').then_some((at + 2, 0))
        }
        _ => None,
    }
}
