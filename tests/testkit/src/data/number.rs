//! Numbers in arguments and values, as strict as the real server.
//!
//! **Invariant.** An integer has one spelling: no plus sign, no leading zeros, no blanks. Otherwise `INCR` on `"01"` would
//! succeed here and fail in production.

use super::Failure;

/// A signed 64-bit integer.
pub(crate) fn parse_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // Counted downwards, because the smallest number has no positive counterpart.
    let mut value = 0_i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// A float; infinities are numbers, NaN is not.
pub(crate) fn parse_float(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.parse::<f64>().ok().filter(|value| !value.is_nan())
}

pub(crate) fn integer(bytes: &[u8]) -> Result<i64, Failure> {
    parse_integer(bytes).ok_or(Failure::NotInteger)
}

pub(crate) fn float(bytes: &[u8]) -> Result<f64, Failure> {
    parse_float(bytes).ok_or(Failure::NotFloat)
}

/// A count that must not be negative, as in `LPOP key count`.
pub(crate) fn positive(bytes: &[u8]) -> Result<usize, Failure> {
    parse_integer(bytes)
        .and_then(|value| usize::try_from(value).ok())
        .ok_or(Failure::text("ERR value is out of range, must be positive"))
}

/// Turns two indexes that may count from the end into a range within `length`. The end is inclusive on the wire.
pub(crate) fn index_range(start: i64, end: i64, length: usize) -> std::ops::Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let absolute = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    let end_is_before_all = end < 0 && end.saturating_add(length) < 0;
    let (start, end) = (absolute(start), absolute(end).min(length - 1));
    if end_is_before_all || start > end || start >= length {
        return 0..0;
    }
    start as usize..end as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("", None),
            ("-", None),
            ("1a", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn ranges_clip() {
        assert_eq!(index_range(0, -1, 3), 0..3);
        assert_eq!(index_range(-2, -1, 3), 1..3);
        assert_eq!(index_range(-100, 100, 3), 0..3);
        assert_eq!(index_range(2, 1, 3), 0..0);
        assert_eq!(index_range(3, 5, 3), 0..0);
        assert_eq!(index_range(0, -4, 3), 0..0);
        assert_eq!(index_range(0, -1, 0), 0..0);
    }
}
