//! The everyday commands as methods of [`Client`](super::Client), a file per group of the command reference.
//!
//! Required arguments stand in position, options are methods of the call. A method whose reply is the caller's data is
//! generic over its type (`let name: Option<String> = client.get("name").await?`); one with a natural type has that.
//!
//! A list of arguments is anything that implements [`ToArgs`](crate::ToArgs): one value, a slice, a tuple, a map. It
//! holds at least one value, and pairs are whole: else the call fails with
//! [`Error::InvalidArgument`](crate::Error::InvalidArgument) before anything is queued.

mod connection;
mod generic;
mod hash;
mod list;
mod server;
mod set;
mod sorted_set;
mod string;
