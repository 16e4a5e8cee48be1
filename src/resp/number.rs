//! The texts of numbers: what is one, and its value.

/// A number of decimal digits only. `None` when there is none, another byte, or more than fits.
#[inline]
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The number in `digits\r\n` at the front, and the bytes that it takes; `None` for anything else, also for what is
/// right but longer than ten digits.
#[inline(always)]
pub(super) fn length_line(bytes: &[u8]) -> Option<(usize, usize)> {
    // Two digits and one are most; the rest is a loop.
    if let Some(word) = bytes.first_chunk() {
        // A digit has its high half, and still has it with 6 added: the low half is below 10.
        let word = u32::from_le_bytes(*word);
        if word & word.wrapping_add(0x0606) & 0xffff_f0f0 == u32::from_le_bytes(*b"00\r\n") {
            return Some(((word & 0xf) as usize * 10 + (word >> 8 & 0xf) as usize, 4));
        }
    }
    match *bytes {
        [units @ b'0'..=b'9', b'\r', b'\n', ..] => Some((usize::from(units - b'0'), 3)),
        _ => longer_length_line(bytes),
    }
}

#[inline(never)]
fn longer_length_line(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0u64;
    let mut at = 0;
    loop {
        let digit = bytes.get(at)?.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if at == 10 {
            return None;
        }
        // Ten digits always fit.
        value = value * 10 + u64::from(digit);
        at += 1;
    }
    let end = bytes.get(..at + 2)?;
    let whole = at > 0 && end[at] == b'\r' && end[at + 1] == b'\n';
    Some((usize::try_from(value).ok()?, at + 2)).filter(|_| whole)
}

/// The number in `:[-]digits\r\n` at the front, and the bytes that it takes, when it has at most 18 digits.
#[inline(always)]
pub(super) fn integer_line(bytes: &[u8]) -> Option<(i64, usize)> {
    if *bytes.first()? != b':' {
        return None;
    }
    let negative = *bytes.get(1)? == b'-';
    let start = 1 + usize::from(negative);
    let mut at = start;
    let mut value = 0i64;
    loop {
        let digit = bytes.get(at)?.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if at - start == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit);
        at += 1;
    }
    let end = bytes.get(..at + 2)?;
    let whole = at > start && end[at] == b'\r' && end[at + 1] == b'\n';
    whole.then_some((if negative { -value } else { value }, at + 2))
}

/// A signed number: an optional sign and digits.
#[inline]
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(unsigned(digits)?),
        [b'+', digits @ ..] => i64::try_from(unsigned(digits)?).ok(),
        digits => i64::try_from(unsigned(digits)?).ok(),
    }
}

/// An optional sign and at least one digit, of any length.
pub(super) fn is_integer(text: &[u8]) -> bool {
    let digits = match text {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn skip_digits(text: &[u8]) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &text[count..])
}

/// A RESP3 double: `[+-]digits[.digits][e[+-]digits]`, or `inf` and `nan` with an optional sign. Servers have sent
/// `-nan` (redis/redis#6196 and its kin), so signs are accepted there too.
pub(super) fn is_double(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    };
    if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"nan") {
        return true;
    }
    let Some(mut rest) = skip_digits(unsigned) else { return false };
    if let [b'.', fraction @ ..] = rest {
        let Some(after) = skip_digits(fraction) else { return false };
        rest = after;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let digits = match exponent {
            [b'-' | b'+', digits @ ..] => digits,
            digits => digits,
        };
        let Some(after) = skip_digits(digits) else { return false };
        rest = after;
    }
    rest.is_empty()
}

/// The value of a text that is a double or an integer.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    match text {
        // Not a number has no sign that could matter.
        "-nan" | "+nan" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_lines() {
        for tens in 0..=255 {
            for units in 0..=255 {
                let line = [tens, units, b'\r', b'\n'];
                let expected = std::str::from_utf8(&line[..2]).ok().filter(|text| !text.starts_with('+'));
                let expected = expected.and_then(|text| text.parse().ok()).map(|value| (value, 4));
                assert_eq!(length_line(&line), expected, "{line:?}");
            }
        }
        assert_eq!(length_line(b"7\r\n"), Some((7, 3)));
        assert_eq!(length_line(b"1024\r\n"), Some((1024, 6)));
        for bad in
            [&b""[..], b"\r\n", b"7", b"7\r", b"7\n\r", b"17\r", b"17\rx", b"-1\r\n", b"12345678901\r\n"]
        {
            assert_eq!(length_line(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn integers() {
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"+7"), Some(7));
        assert_eq!(signed(b"9223372036854775808"), None);
        for bad in [&b""[..], b"-", b"+", b"1a", b" 1", b"--1", b"1-"] {
            assert_eq!(signed(bad), None);
            assert!(!is_integer(bad));
        }
        assert_eq!(unsigned(b"18446744073709551616"), None);
    }

    // F-05
    #[test]
    fn doubles() {
        for good in
            [&b"1"[..], b"-1.5", b"1e5", b"1.5E-300", b"+2", b"inf", b"-inf", b"nan", b"-nan", b"0.1e+1"]
        {
            assert!(is_double(good), "{good:?}");
            assert!(double(good).is_some());
        }
        for bad in
            [&b""[..], b".5", b"5.", b"1e", b"1e+", b"-", b"infinity", b"0x10", b"1.2.3", b"1 ", b"1_0"]
        {
            assert!(!is_double(bad), "{bad:?}");
        }
    }
}
