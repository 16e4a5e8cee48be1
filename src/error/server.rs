//! An error that a server answered: the only place that reads such a text.

use super::{CommandName, Delivery};
use std::fmt;

/// First words of server errors, so that callers need no string literals.
pub mod code {
    /// The default code.
    pub const ERR: &str = "ERR";
    /// The dataset is being loaded.
    pub const LOADING: &str = "LOADING";
    /// A script has been running for too long.
    pub const BUSY: &str = "BUSY";
    /// The cluster cannot serve the slot.
    pub const CLUSTERDOWN: &str = "CLUSTERDOWN";
    /// The keys of a command are split while their slot moves.
    pub const TRYAGAIN: &str = "TRYAGAIN";
    /// A replica lost its primary and may not serve stale data.
    pub const MASTERDOWN: &str = "MASTERDOWN";
    /// The slot lives elsewhere.
    pub const MOVED: &str = "MOVED";
    /// The key has moved already.
    pub const ASK: &str = "ASK";
    /// Keys of one command in different slots.
    pub const CROSSSLOT: &str = "CROSSSLOT";
    /// A write on a read-only replica.
    pub const READONLY: &str = "READONLY";
    /// Writes need more replicas than there are.
    pub const NOREPLICAS: &str = "NOREPLICAS";
    /// Writes are refused since persistence fails.
    pub const MISCONF: &str = "MISCONF";
    /// Memory is used up.
    pub const OOM: &str = "OOM";
    /// The value has another type.
    pub const WRONGTYPE: &str = "WRONGTYPE";
    /// Authentication is required.
    pub const NOAUTH: &str = "NOAUTH";
    /// The credentials are wrong.
    pub const WRONGPASS: &str = "WRONGPASS";
    /// The user may not do this.
    pub const NOPERM: &str = "NOPERM";
    /// The protocol version is not supported.
    pub const NOPROTO: &str = "NOPROTO";
    /// The script is not loaded.
    pub const NOSCRIPT: &str = "NOSCRIPT";
    /// The transaction was discarded.
    pub const EXECABORT: &str = "EXECABORT";
    /// The group exists already.
    pub const BUSYGROUP: &str = "BUSYGROUP";
    /// The key exists already.
    pub const BUSYKEY: &str = "BUSYKEY";
    /// The stream or group does not exist.
    pub const NOGROUP: &str = "NOGROUP";
    /// The blocked client was unblocked by another.
    pub const UNBLOCKED: &str = "UNBLOCKED";
    /// No replica or primary can be reached.
    pub const NOMASTERLINK: &str = "NOMASTERLINK";
    /// Nothing to kill.
    pub const NOTBUSY: &str = "NOTBUSY";
}

/// A server's error reply: its first word, its text and the command that it answers.
///
/// Servers repeat arguments in some texts ("with args beginning with: …"); that part is cut, so that no key, value
/// or credential gets into an error or a log.
#[derive(Clone, PartialEq, Debug)]
pub struct ServerError {
    text: Box<str>,
    code_len: usize,
    command: Option<CommandName>,
    /// Set when it answers something else than the command that it is told to.
    delivery: Option<Delivery>,
}

/// Older servers end the text of an unknown command with the arguments themselves.
const ARGUMENTS: &str = "with args beginning with:";

impl ServerError {
    /// Reads the text of an error reply (without its type byte and line end).
    pub fn parse(text: &str, command: Option<CommandName>) -> Self {
        let text = match text.find(ARGUMENTS) {
            Some(at) => text[..at].trim_end_matches([' ', ',']),
            None => text,
        };
        let code_len = text.find(' ').unwrap_or(text.len());
        Self { text: text.into(), code_len, command, delivery: None }
    }

    /// The first word, such as `WRONGTYPE`. Constants are in [`code`].
    pub fn code(&self) -> &str {
        &self.text[..self.code_len]
    }

    /// The whole text, code included.
    pub fn message(&self) -> &str {
        &self.text
    }

    /// The command that was answered, when it is known.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// Whether the command may have run: refused unrun, or answered.
    pub fn delivery(&self) -> Delivery {
        match self.delivery {
            Some(delivery) => delivery,
            None if self.is_refusal() => Delivery::NotExecuted,
            None => Delivery::Answered,
        }
    }

    pub(super) fn set_delivery(&mut self, delivery: Delivery) {
        self.delivery = Some(delivery);
    }

    pub(super) fn set_command(&mut self, name: impl FnOnce() -> CommandName) {
        self.command.get_or_insert_with(name);
    }

    /// The same error without its text, if that holds `secret`. (A hole in a well-known text would spell it out.)
    pub(crate) fn without(mut self, secret: &str) -> Self {
        if !secret.is_empty() && self.text.contains(secret) {
            let code = if self.code().contains(secret) { code::ERR } else { self.code() };
            let text = format!("{code} (text withheld: it repeats the password)");
            self.code_len = code.len();
            self.text = text.into();
        }
        self
    }

    /// The server could not serve the command now and may later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.code(),
            code::LOADING | code::BUSY | code::CLUSTERDOWN | code::TRYAGAIN | code::MASTERDOWN
        )
    }

    /// The server turned the command away before it ran: these codes are checked before a command's function is
    /// called. `READONLY`, `OOM` and `NOPERM` are not among them, since a script reports them half-way.
    pub fn is_refusal(&self) -> bool {
        // A script may pass on any of these texts from a command of its own, after others have run.
        let script = matches!(self.command(), Some("EVAL" | "EVALSHA" | "FCALL" | "EXEC"));
        !script
            && (self.is_transient()
                || matches!(self.code(), code::MOVED | code::ASK | code::CROSSSLOT | code::NOAUTH))
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(f, "{command}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    // CONN-128
    #[test]
    fn code_text_and_command() {
        let error = ServerError::parse("WRONGTYPE Operation against a key", Some("LPUSH".into()));
        assert_eq!(error.code(), code::WRONGTYPE);
        assert_eq!(error.message(), "WRONGTYPE Operation against a key");
        assert_eq!(error.command(), Some("LPUSH"));
        assert_eq!(ServerError::parse("ODD", None).code(), "ODD");
        assert_eq!(ServerError::parse("", None).code(), "");
    }

    // CONN-129
    #[test]
    fn transient_codes_are_exactly_five() {
        use code::*;
        for transient in [LOADING, BUSY, CLUSTERDOWN, TRYAGAIN, MASTERDOWN] {
            assert!(ServerError::parse(&format!("{transient} x"), None).is_transient());
        }
        for lasting in [
            ERR,
            MOVED,
            ASK,
            CROSSSLOT,
            READONLY,
            NOREPLICAS,
            MISCONF,
            OOM,
            WRONGTYPE,
            NOAUTH,
            WRONGPASS,
            NOPERM,
            NOPROTO,
            NOSCRIPT,
            EXECABORT,
            BUSYGROUP,
            BUSYKEY,
            NOGROUP,
            UNBLOCKED,
            NOMASTERLINK,
            NOTBUSY,
        ] {
            assert!(!ServerError::parse(&format!("{lasting} x"), None).is_transient(), "{lasting}");
        }
    }

    // SYS-010: Redis before 7 repeats arguments in this text.
    #[test]
    fn arguments_repeated_by_the_server_are_cut() {
        let text = "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `app`, `hunter2`, ";
        let error = ServerError::parse(text, None);
        assert_eq!(error.message(), "ERR unknown command `HELLO`");
        let error = ServerError::parse("WRONGPASS invalid username-password pair", None).without("pass");
        assert_eq!(error.code(), "WRONGPASS");
        assert!(!error.message().contains("invalid"), "{error}");
        assert_eq!(ServerError::parse("hunter2 x", None).without("hunter2").code(), "ERR");
    }

    #[test]
    fn a_refusal_inside_a_script_proves_nothing() {
        assert!(ServerError::parse("LOADING x", Some("SET".into())).is_refusal());
        assert!(!ServerError::parse("LOADING x", Some("EVAL".into())).is_refusal());
    }
}
