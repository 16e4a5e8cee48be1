//! Replies: values to bytes, in the protocol that the connection speaks.
//!
//! **Problem.** The same command answers `%1` to a RESP3 client and `*2` to a RESP2 client; a command that had to choose
//! would be written twice.
//!
//! **Idea.** Commands say what they answer (a map, a double, a null); [`Reply`] chooses the shape and appends it to the
//! connection's output. Nothing is built in between.
//!
//! **Invariant.** Each method writes one complete RESP element, or the header of an aggregate whose elements the caller
//! writes next.

/// The writer of one connection's replies.
pub(crate) struct Reply<'a> {
    out: &'a mut Vec<u8>,
    resp3: bool,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, resp3: bool) -> Self {
        Self { out, resp3 }
    }

    pub(crate) fn is_resp3(&self) -> bool {
        self.resp3
    }

    /// Takes effect at once: the answer to `HELLO 3` is already RESP3.
    pub(crate) fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// Where the output stands, for [`Reply::rewind`].
    pub(crate) fn mark(&self) -> usize {
        self.out.len()
    }

    /// Forgets what was written since `mark`, so that a command may fail half-way.
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.out.truncate(mark);
    }

    fn header(&mut self, kind: u8, count: usize) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error line. Line breaks would end it early, so they become blanks, as in the real server.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
    }

    pub(crate) fn count(&mut self, value: usize) {
        self.header(b':', value);
    }

    /// 1 or 0: the commands served here answer integers, not RESP3 booleans.
    pub(crate) fn flag(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b":1\r\n" } else { b":0\r\n" });
    }

    pub(crate) fn bulk(&mut self, value: &[u8]) {
        self.header(b'$', value.len());
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn bulk_or_null(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.bulk(value),
            None => self.null(),
        }
    }

    /// The absence of a string.
    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The absence of an array.
    pub(crate) fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub(crate) fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    pub(crate) fn set(&mut self, count: usize) {
        self.header(if self.resp3 { b'~' } else { b'*' }, count);
    }

    /// `pairs` keys, each followed by its value.
    pub(crate) fn map(&mut self, pairs: usize) {
        if self.resp3 { self.header(b'%', pairs) } else { self.header(b'*', pairs * 2) }
    }

    pub(crate) fn double(&mut self, value: f64) {
        let text = format_double(value);
        if self.resp3 { self.line(b',', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    /// Text for people: verbatim in RESP3.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if self.resp3 {
            self.header(b'=', text.len() + 4);
            self.out.extend_from_slice(b"txt:");
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }
}

/// A score as the server prints it: the shortest text that reads back the same.
pub(crate) fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        // The server writes the sign of the exponent; Rust writes it only when negative.
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Reply<'_>)) -> (String, String) {
        let render = |resp3| {
            let mut out = Vec::new();
            write(&mut Reply::new(&mut out, resp3));
            String::from_utf8(out).unwrap()
        };
        (render(false), render(true))
    }

    #[test]
    fn shapes_by_protocol() {
        let same = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(both(|r| r.bulk(b"ab")), same("$2\r\nab\r\n"));
        assert_eq!(both(|r| r.error("ERR a\r\nb")), same("-ERR a  b\r\n"));
        assert_eq!(both(|r| r.null()), ("$-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|r| r.null_array()), ("*-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|r| r.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
        assert_eq!(both(|r| r.set(2)), ("*2\r\n".into(), "~2\r\n".into()));
        assert_eq!(both(|r| r.double(1.5)), ("$3\r\n1.5\r\n".into(), ",1.5\r\n".into()));
        assert_eq!(both(|r| r.verbatim("x")), ("$1\r\nx\r\n".into(), "=5\r\ntxt:x\r\n".into()));
    }

    #[test]
    fn doubles_as_the_server_prints_them() {
        for (value, text) in [
            (3.0, "3"),
            (-0.25, "-0.25"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1e300, "1e+300"),
            (1e-10, "1e-10"),
            (17179869184.0, "17179869184"),
        ] {
            assert_eq!(format_double(value), text);
        }
    }
}
