//! Commands as tests see them: while they are decided upon, and afterwards.
//!
//! **Idea.** [`Request`] borrows the bytes of the command that just arrived; [`Recorded`] owns them. Both answer the same
//! questions, so that a check can move from a script to an assertion.

use crate::request::Args;
use std::fmt;

/// A command that has arrived and was not answered yet; what a script decides upon.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    args: Args<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(args: Args<'a>) -> Self {
        Self { args }
    }

    /// The command's name as it was sent.
    pub fn name(&self) -> &'a [u8] {
        self.args.at(0)
    }

    /// Whether the name is this one, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name.as_bytes())
    }

    /// The argument at `index`; 0 is the first one behind the name.
    pub fn arg(&self, index: usize) -> Option<&'a [u8]> {
        self.args.get(index + 1)
    }

    /// The arguments behind the name.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        self.args.from(1)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.args.from(0)))
    }
}

/// A command that the server received while recording was on.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The number of the connection, counted from 1.
    pub connection: u64,
    /// The name and the arguments as they were sent.
    pub args: Vec<Vec<u8>>,
}

impl Recorded {
    pub(crate) fn new(connection: u64, args: Args<'_>) -> Self {
        Self { connection, args: args.from(0).map(<[u8]>::to_vec).collect() }
    }

    /// Whether the name is this one, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.args.first().is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Name and arguments with blanks between: `SET k v`. Bytes that are not text are escaped.
    pub fn text(&self) -> String {
        text(self.args.iter().map(|arg| &**arg))
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.connection, self.text())
    }
}

fn text<'a>(args: impl Iterator<Item = &'a [u8]>) -> String {
    let words: Vec<String> = args.map(|arg| arg.escape_ascii().to_string()).collect();
    words.join(" ")
}
