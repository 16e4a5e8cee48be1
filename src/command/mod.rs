//! What commands are: how one is written to the wire, and which may not enter a shared connection.

mod raw;
mod refused;
pub mod typed;

pub use raw::Raw;
pub use refused::{Refusal, refusal};

use crate::error::{CommandName, Error};
use crate::resp::Encoder;

/// A command with its arguments, ready to be written.
///
/// It is asked to write itself once, when the call is admitted to a connection; until then arguments stay borrowed
/// and nothing is copied.
pub trait Command {
    /// The command's name, for errors.
    fn name(&self) -> CommandName;

    /// Whether it may enter the shared connection. Checked before anything is queued.
    fn check(&self, _allow_admin: bool) -> Result<(), Error> {
        Ok(())
    }

    /// Writes exactly one frame.
    fn encode(&self, encoder: &mut Encoder<'_>);
}
