//! RESP2 and RESP3: bytes to frames and values, values to bytes.
//!
//! The problem: replies arrive in pieces that end anywhere, many of them per system call, and most are a short string
//! that one caller wants as one Rust type. So the work is cut in two. A [`Scanner`] runs when bytes arrive; it finds
//! only *where a frame ends*, checks that the bytes are RESP, and builds nothing. A [`Decoder`] runs in the task that
//! asked, over a whole and validated frame, and writes straight into the type asked for ([`FromReply`]). Between the
//! two lies nothing but the bytes themselves ([`Payload`](crate::buf::Payload)).
//!
//! The other way, an [`Encoder`] appends a command's frame to the outgoing [`Log`](crate::buf::Log); arguments are
//! whatever implements [`ToArgs`].
//!
//! Invariants: nothing here recurses on what a peer sent; memory grows with the bytes received and never with a
//! length that was only announced; no input panics; errors name types and limits, never content.

mod args;
mod convert;
mod decoder;
mod encode;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod number;
mod reply;
mod scan;
mod stack;
#[cfg(test)]
mod tests;
mod token;
mod value;
mod value_encode;

pub use args::{ToArg, ToArgs};
pub use convert::FromReply;
pub use decoder::Decoder;
pub use encode::{Encoder, LEND_FROM};
pub use limits::Limits;
pub use reply::{Blob, Chunks, Reply, Verbatim};
pub use scan::{FrameKind, Scan, Scanner};
pub use token::{Str, Token};
pub use value::Value;
