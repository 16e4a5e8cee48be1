//! What commands are: how one is written to the wire, and which may not enter a shared connection.

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod raw;
mod refused;
pub mod typed;

pub use raw::Raw;
pub use refused::{Refusal, refusal};

use crate::error::Error;

pub use crate::error::CommandName;
pub use crate::resp::Encoder;

/// A command with its arguments, ready to be written.
///
/// It is asked to write itself once, when the call is admitted to a connection; until then arguments stay borrowed
/// and nothing is copied. `Client::call` sends one of your own:
///
/// ```
/// use respiral::command::{Command, Encoder, CommandName};
/// /// The bit at `offset` of `key`.
/// struct GetBit<'a> {
///     key: &'a str,
///     offset: u32,
/// }
/// impl Command for GetBit<'_> {
///     fn name(&self) -> CommandName {
///         "GETBIT".into()
///     }
///     fn encode(&self, encoder: &mut Encoder<'_>) {
///         encoder.begin(3); // the name counts
///         encoder.arg(b"GETBIT");
///         encoder.arg(self.key.as_bytes());
///         encoder.uint(self.offset.into());
///     }
/// }
/// # async fn example(client: respiral::Client) -> respiral::Result<()> {
/// let bit: bool = client.call(GetBit { key: "seen", offset: 7 }).await?;
/// # let _ = bit; Ok(()) }
/// ```
pub trait Command {
    /// The command's name, for errors.
    fn name(&self) -> CommandName;

    /// Whether it may enter the shared connection, checked before anything is queued. The default lets everything pass:
    /// override it, with [`refusal`], for a command that blocks or changes the connection.
    fn check(&self, _allow_admin: bool) -> Result<(), Error> {
        Ok(())
    }

    /// Writes exactly one frame. It must not use the client, which is writing.
    fn encode(&self, encoder: &mut Encoder<'_>);
}
