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

/// As [`length_line`], for one to six digits that lie in eight bytes: all at once.
#[inline(always)]
fn length_word(bytes: &[u8]) -> Option<(usize, usize)> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    // The lowest byte that is a CR: below it nothing is borrowed.
    let other = word ^ (ONES * u64::from(b'\r'));
    let found = other.wrapping_sub(ONES) & !other & (ONES << 7);
    let count = found.trailing_zeros() / 8;
    if !(1..=6).contains(&count) || bytes[count as usize + 1] != b'\n' {
        return None;
    }
    // The digits at the end of the word, zeros in front.
    let digits = (word ^ (ONES * u64::from(b'0'))) << (64 - 8 * count);
    if (digits.wrapping_add(ONES * 0x76) | digits) & (ONES << 7) != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let value = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    Some((value as usize, count as usize + 2))
}

#[inline(never)]
fn longer_length_line(bytes: &[u8]) -> Option<(usize, usize)> {
    length_word(bytes).or_else(|| length_by_digits(bytes))
}

fn length_by_digits(bytes: &[u8]) -> Option<(usize, usize)> {
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
    fn lengths_in_a_word_are_those_by_digits() {
        for value in (0..1000).chain((1000..1_000_000).step_by(997)).chain([999_999, 1_000_000, 12_345_678]) {
            let line = format!("{value}\r\n........");
            assert_eq!(length_line(line.as_bytes()), Some((value, line.len() - 8)));
            assert_eq!(length_word(line.as_bytes()).is_some(), value < 1_000_000, "{value}");
        }
        for base in [&b"12345678"[..], b"1\r\n$5\r\nx", b"123456\r\n", b"123\r\n\r\r\r", b"\r\n123456"] {
            for at in 0..8 {
                for byte in 0..=255 {
                    let mut line = base.to_vec();
                    line[at] = byte;
                    if let Some(found) = length_word(&line) {
                        assert_eq!(Some(found), length_by_digits(&line), "{line:?}");
                    }
                    assert_eq!(longer_length_line(&line), length_by_digits(&line), "{line:?}");
                }
            }
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
