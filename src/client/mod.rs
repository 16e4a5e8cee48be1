//! One deployment's client without I/O: options, tickets, and the machine that composes connections.

mod deadlines;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod options;
mod pushes;
mod roster;
#[cfg(test)]
mod tests;
mod tickets;
mod url;

pub use crate::id::TicketId;
pub use machine::{Admission, ClientMachine, Load, Reply as MachineReply};
pub use options::ConnectOptions;
pub use pushes::{PushListener, Pushes};
