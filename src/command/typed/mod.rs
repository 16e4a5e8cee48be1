//! The everyday commands as types, a file per group of the command reference. `Client` has a method for each.
//!
//! Three shapes cover them all, so that every file reads the same: `fixed!` for a command whose arguments are all
//! required, with a frame header known beforehand; `variadic!` for one that ends in a list; and a struct with an
//! [`Option`] per token for the rest, which [`write`] puts behind the name in their order.

pub mod connection;
pub mod generic;
pub mod hash;
pub mod list;
pub mod reply;
pub mod server;
pub mod set;
pub mod sorted_set;
pub mod string;

use crate::error::{Error, InvalidError};
use crate::resp::{Encoder, ToArgs};

/// Implements [`Command`](crate::command::Command) for a command whose arguments are all required: the name, the
/// pre-encoded frame header with the name, then one argument after the other.
macro_rules! fixed {
    ($(#[$doc:meta])* $type:ident$(<$($generic:ident),*>)?, $name:literal, $prefix:literal
        $(, $field:ident: $kind:ty)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $type$(<$($generic),*>)? {
            $(pub(crate) $field: $kind,)*
        }

        impl$(<$($generic: crate::resp::ToArg),*>)? crate::command::Command for $type$(<$($generic),*>)? {
            fn name(&self) -> crate::error::CommandName {
                $name.into()
            }

            #[inline(always)]
            fn encode(&self, encoder: &mut crate::resp::Encoder<'_>) {
                encoder.begin_with($prefix, 0 $(+ { let _ = stringify!($field); 1 })*);
                $(crate::resp::ToArgs::write(&self.$field, encoder);)*
            }
        }
    };
}
use fixed;

/// Implements [`Command`](crate::command::Command) for a command that ends in a list: the name, the required arguments,
/// the list, and what is asked of its length.
macro_rules! variadic {
    ($(#[$doc:meta])* $type:ident, $name:literal, ($($field:ident: $generic:ident),*),
        $list:ident: $many:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $type<$($generic,)* $many> {
            $(pub(crate) $field: $generic,)*
            pub(crate) $list: $many,
        }

        impl<$($generic: crate::resp::ToArg,)* $many: crate::resp::ToArgs> crate::command::Command
            for $type<$($generic,)* $many>
        {
            fn name(&self) -> crate::error::CommandName {
                $name.into()
            }

            fn check(&self, _allow_admin: bool) -> Result<(), crate::error::Error> {
                crate::command::typed::$check($name, stringify!($list), self.$list.count())
            }

            fn encode(&self, encoder: &mut crate::resp::Encoder<'_>) {
                crate::command::typed::write(encoder, $name, ($(&self.$field,)* &self.$list,));
            }
        }
    };
}
use variadic;

/// Writes the frame of `name` with these arguments.
#[inline]
fn write(encoder: &mut Encoder<'_>, name: &'static str, args: impl ToArgs) {
    encoder.begin(1 + args.count());
    encoder.arg(name.as_bytes());
    args.write(encoder);
}

/// Refuses an empty list: the server would only say that the number of arguments is wrong.
fn at_least_one(command: &'static str, argument: &'static str, count: usize) -> Result<(), Error> {
    match count {
        0 => Err(refused_list(command, argument, "needs at least one, and got none")),
        _ => Ok(()),
    }
}

/// Refuses an empty list, and one whose last pair lacks its second half.
fn whole_pairs(command: &'static str, argument: &'static str, count: usize) -> Result<(), Error> {
    at_least_one(command, argument, count)?;
    match count % 2 {
        1 => Err(refused_list(command, argument, "needs whole pairs, and got an odd number of values")),
        _ => Ok(()),
    }
}

#[cold]
fn refused_list(command: &'static str, argument: &'static str, fault: &'static str) -> Error {
    Error::InvalidArgument(Box::new(InvalidError {
        what: argument.into(),
        message: format!("{command} {fault}").into(),
        command: Some(command.into()),
        server: None,
    }))
}

#[cfg(test)]
mod tests {
    use crate::buf::{Log, Transmit};
    use crate::command::Command;
    use crate::error::Error;
    use crate::resp::Encoder;

    /// The command has this name and its frame is exactly these words; `name` may be their first word only.
    #[track_caller]
    pub(super) fn assert_frame(command: &impl Command, words: &[&str]) {
        let mut log = Log::new(64);
        let mut encoder = Encoder::new(&mut log);
        command.encode(&mut encoder);
        assert!(encoder.is_whole());
        let mut slices = Transmit::new();
        log.slices(0, log.end(), &mut slices);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let mut expected = format!("*{}\r\n", words.len());
        for word in words {
            expected += &format!("${}\r\n{word}\r\n", word.len());
        }
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        assert_eq!(command.name(), words[0]);
        command.check(true).unwrap();
    }

    /// The command is refused, for this argument.
    #[track_caller]
    pub(super) fn assert_refused(command: &impl Command, argument: &str) {
        match command.check(true).unwrap_err() {
            Error::InvalidArgument(error) => {
                assert_eq!(error.what, argument);
                assert_eq!(error.command, Some(command.name()));
                assert!(error.message.starts_with(&*command.name()), "{error}");
            }
            error => panic!("{error}"),
        }
    }
}
