//! Glob patterns of `KEYS` and `SCAN MATCH`: `*`, `?`, `[a-z]`, `[^a]`, `\x`.
//!
//! **Problem.** The obvious recursion takes exponential time on patterns such as `*a*a*a*b`.
//!
//! **Idea.** Only the last `*` ever needs to take more characters: remember where it stood and retry from there.
//!
//! **Invariant.** The work is bounded by the pattern's length times the text's length. An unclosed class ends with the
//! pattern, as in the real server.

/// Whether the whole `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, in_text));
            at += 1;
            continue;
        }
        if let Some(length) = match_one(&pattern[at..], text[in_text]) {
            at += length;
            in_text += 1;
            continue;
        }
        let Some((after_star, taken)) = star else { return false };
        star = Some((after_star, taken + 1));
        at = after_star;
        in_text = taken + 1;
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Matches one character; the length of the pattern's element, or `None` when it does not match.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ref class @ ..] => match_class(class, byte).map(|length| length + 1),
        [b'\\', escaped, ..] => (escaped == byte).then_some(2),
        [literal, ..] => (literal == byte).then_some(1),
    }
}

fn match_class(class: &[u8], byte: u8) -> Option<usize> {
    let (negated, mut at) = if class.first() == Some(&b'^') { (true, 1) } else { (false, 0) };
    let mut found = false;
    loop {
        match class.get(at..).unwrap_or_default() {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                found |= (*first.min(last)..=*first.max(last)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-b]llo", "hbllo", true),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            ("user:*:x", "user:1:2:x", true),
            ("user:*:x", "user:1:2:y", false),
            ("[a", "a", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        assert!(!matches("*a".repeat(30).as_bytes(), &[b'b'; 200]));
    }
}
