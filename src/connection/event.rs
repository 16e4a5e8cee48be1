//! What a connection tells its owner.

use crate::buf::Payload;
use crate::error::{Delivery, Error};
use crate::id::TicketId;

/// Where a connection puts what it finds in its input, and what it has to give up. The owner implements it; nothing
/// here may call back into the connection.
pub trait Sink {
    /// A reply in its turn; it is made when somebody waits for it. (Made before, it would travel through memory.)
    fn reply(&mut self, ticket: TicketId, payload: impl FnOnce() -> Payload);

    /// A reply whose caller is gone; it was dropped.
    fn reply_dropped(&mut self) {}

    /// A push message (RESP3), at any moment.
    fn push(&mut self, payload: Payload);

    /// The command ends without a reply.
    fn ended(&mut self, ticket: TicketId, delivery: Delivery, error: &Error);
}

/// A change of a connection's state.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// Set-up is done; commands may enter.
    Up,
    /// An established connection is gone.
    Lost(Error),
    /// An attempt to connect failed.
    Failed(Error),
    /// It was closed by its owner.
    Closed,
}
