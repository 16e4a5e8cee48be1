//! The client's stream, cut into frames again by the model servers and by the checkers.

/// The first whole frame in `bytes`: its length and its words.
pub fn parse(bytes: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    let mut at = 0;
    let count = number(bytes, &mut at, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(bytes, &mut at, b'$')?;
        let word = bytes.get(at..at + length)?;
        let end = bytes.get(at + length..at + length + 2)?;
        assert_eq!(end, b"\r\n", "a frame of the client is broken: {:?}", String::from_utf8_lossy(word));
        at += length + 2;
        words.push(word);
    }
    Some((at, words))
}

/// The call that the words belong to; `None` for set-up.
pub fn call_of(words: &[&[u8]]) -> Option<u64> {
    if is_setup(words) {
        return None;
    }
    std::str::from_utf8(words.get(1)?).ok()?.parse().ok()
}

pub fn is_setup(words: &[&[u8]]) -> bool {
    matches!(words.first(), Some(&(b"HELLO" | b"AUTH" | b"SELECT" | b"CLIENT" | b"PING")))
}

fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let rest = bytes.get(*at..)?;
    let first = *rest.first()?;
    assert_eq!(first as char, kind as char, "the client's stream is out of step");
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    *at += end + 2;
    std::str::from_utf8(&rest[1..end]).ok()?.parse().ok()
}
