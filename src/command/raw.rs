//! Any command, by name.

use super::{Command, refused};
use crate::buf::{Log, Transmit};
use crate::error::{CommandName, Error};
use crate::resp::{Encoder, ToArgs};

/// A command made of a name and arguments, of any kind; what `Client::cmd` builds.
pub struct Raw {
    /// Upper case.
    name: String,
    /// The arguments as they go on the wire.
    args: Log,
    count: usize,
    /// An argument wrote what is none, or panicked in the middle.
    is_torn: bool,
}

impl Raw {
    /// The command `name`, so far without arguments. The words of a name with a subcommand may stand in one string:
    /// `"CONFIG GET"`.
    pub fn new(name: &str) -> Self {
        let mut words = name.split_ascii_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_uppercase();
        let mut raw = Self { name, args: Log::new(256), count: 0, is_torn: false };
        for word in words {
            raw.arg(word);
        }
        raw
    }

    /// Appends an argument, or several when the value stands for several (slices, maps, tuples).
    pub fn arg(&mut self, value: impl ToArgs) {
        // Arguments are user code: this one must have returned, and must not have begun a command of its own.
        let was_torn = std::mem::replace(&mut self.is_torn, true);
        let mut encoder = Encoder::new(&mut self.args);
        value.write(&mut encoder);
        self.is_torn = was_torn || encoder.is_begun();
        self.count += encoder.written();
    }

    fn bytes(&self) -> Transmit {
        let mut slices = Transmit::new();
        self.args.slices(0, self.args.end(), &mut slices);
        slices
    }
}

impl Command for Raw {
    fn name(&self) -> CommandName {
        CommandName::from(self.name.clone())
    }

    fn check(&self, allow_admin: bool) -> Result<(), Error> {
        if self.name.is_empty() {
            return Err(Error::invalid("name", "a command needs a name"));
        }
        if self.is_torn {
            return Err(Error::invalid("arg", "an argument wrote what is no argument"));
        }
        if !refused::is_listed(&self.name) {
            return Ok(());
        }
        let bytes = self.bytes().iter().flat_map(|slice| slice.iter().copied()).collect::<Vec<u8>>();
        refused::check(&self.name(), Arguments(&bytes), allow_admin)
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.begin(1 + self.count);
        encoder.arg(self.name.as_bytes());
        encoder.encoded(self.bytes(), self.count);
    }
}

/// Reads encoded arguments back.
#[derive(Clone)]
struct Arguments<'a>(&'a [u8]);

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let line = memchr::memchr(b'\n', self.0)?;
        let length = std::str::from_utf8(self.0.get(1..line.checked_sub(1)?)?).ok()?.parse::<usize>().ok()?;
        let arg = self.0.get(line + 1..line + 1 + length)?;
        self.0 = self.0.get(line + 1 + length + 2..)?;
        Some(arg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(line: &str) -> Raw {
        Raw::new(line)
    }

    // CONN-142: raw commands too.
    #[test]
    fn raw_commands_are_checked() {
        raw("blpop q 0").check(true).unwrap_err();
        raw("XREAD BLOCK 5 STREAMS s $").check(true).unwrap_err();
        raw("XREAD STREAMS s 0").check(true).unwrap();
        raw("CONFIG SET maxmemory 0").check(false).unwrap_err();
        raw("CONFIG SET maxmemory 0").check(true).unwrap();
        raw("CONFIG GET maxmemory").check(false).unwrap();
        raw("  ").check(true).unwrap_err();
        let mut long = raw("config");
        long.arg("x".repeat(5000));
        long.arg("SET");
        long.check(false).unwrap();
    }

    #[test]
    fn torn_arguments_are_refused() {
        struct Begins;
        impl ToArgs for Begins {
            fn count(&self) -> usize {
                1
            }
            fn write(&self, encoder: &mut Encoder<'_>) {
                encoder.begin(1);
                encoder.arg(b"x");
            }
        }
        struct Panics;
        impl ToArgs for Panics {
            fn count(&self) -> usize {
                2
            }
            fn write(&self, encoder: &mut Encoder<'_>) {
                encoder.arg(b"x");
                panic!("this panic belongs to the test");
            }
        }
        let mut command = raw("GET");
        command.arg(Begins);
        command.arg("good");
        command.check(true).unwrap_err();
        let mut command = raw("GET");
        let torn = std::panic::AssertUnwindSafe(|| command.arg(Panics));
        std::panic::catch_unwind(torn).unwrap_err();
        command.check(true).unwrap_err();
    }

    #[test]
    fn the_frame_holds_the_words_and_the_arguments() {
        let mut command = raw("config get");
        command.arg(("a", 7));
        let mut log = Log::new(64);
        command.encode(&mut Encoder::new(&mut log));
        let mut slices = Transmit::new();
        log.slices(0, log.end(), &mut slices);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(bytes, b"*4\r\n$6\r\nCONFIG\r\n$3\r\nget\r\n$1\r\na\r\n$1\r\n7\r\n");
    }
}
