//! Bytes on their way in and out, without copies.
//!
//! *In:* the kernel writes into one of a fixed number of equal buffers ([`BufferPool`]); what it wrote is handed on as
//! a [`Segment`], a counted reference. The buffer is the kernel's again when the last reference is gone. A reply
//! that spans segments is a [`Chain`]; a small one is copied out at once ([`Payload`]), since one kept byte would
//! pin a whole buffer. A large string gets memory of its own ([`Block`]), into which it is received.
//!
//! *Out:* callers append to a [`Log`] of chunks that never move; the kernel gets [`ChunkSlice`]s of it, and a chunk
//! lives until the log *and* the kernel are done with it.
//!
//! Invariant: whoever can reach bytes mutably is the only one who can reach them. Pool buffers are either free, with
//! the kernel, or lent (reference count above zero); chunks are written only past the end of every slice.
#![allow(unsafe_code)]

mod block;
mod chain;
mod log;
mod payload;
mod pool;
mod segment;

pub use block::Block;
pub use chain::Chain;
pub use log::{ChunkSlice, Log, Returns, Transmit};
pub use payload::{Glance, HOLD_FROM, Parts, Payload, Spares};
pub use pool::{BufferPool, FreeBuffer};
pub use segment::Segment;
