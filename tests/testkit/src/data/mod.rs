//! The commands: what the server does when no test interferes.
//!
//! **Problem.** About a hundred commands share the same questions (does the key exist, has it expired, is it of the right
//! kind, how many arguments) and answer them with the exact words that clients match on.
//!
//! **Idea.** [`table`] lists every command with its arity and its function. [`run`] asks the common questions once; a
//! command's function reads the arguments, works on the [`Store`] and writes the reply, or returns a [`Failure`].
//!
//! **Invariant.** A command writes exactly one reply: when it fails, what it had written is taken back first.

pub(crate) mod glob;
pub(crate) mod hasher;
mod hashes;
mod keys;
mod lists;
pub(crate) mod number;
mod ranges;
mod server;
mod sessions;
mod sets;
mod store;
mod strings;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod zset;
mod zsets;

use crate::reply::Reply;
use crate::request::Args;
use crate::session::{Peers, Session};
use std::borrow::Cow;
use std::collections::BTreeMap;
pub(crate) use store::Store;
use table::{Command, Table};

/// Why a command did not do its work; the error reply's text.
#[derive(Debug)]
pub(crate) enum Failure {
    WrongType,
    Syntax,
    NotInteger,
    NotFloat,
    NoSuchKey,
    Arity,
    Text(Cow<'static, str>),
}

impl Failure {
    pub(crate) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }
}

pub(crate) type Outcome = Result<(), Failure>;

/// What the whole server was told when it was built, as far as commands ask for it.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Users and passwords; without any, nobody has to authenticate.
    pub(crate) users: Vec<(String, String)>,
    /// `HELLO` is an unknown command, as before version 6.
    pub(crate) resp2_only: bool,
    /// `HELLO 3` is answered with `NOPROTO`.
    pub(crate) refuses_resp3: bool,
    /// What `CONFIG SET` changed.
    pub(crate) config: BTreeMap<String, String>,
    /// The port in `INFO`; 0 for a Unix socket.
    pub(crate) port: u16,
}

/// Everything that one command may use.
pub(crate) struct Call<'a> {
    pub(crate) command: &'static Command,
    pub(crate) args: Args<'a>,
    pub(crate) store: &'a mut Store,
    pub(crate) session: &'a mut Session,
    pub(crate) settings: &'a mut Settings,
    pub(crate) peers: &'a dyn Peers,
    pub(crate) reply: Reply<'a>,
}

/// The parts of the server that commands work on.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) table: Table,
    pub(crate) store: Store,
    pub(crate) settings: Settings,
}

impl World {
    /// Runs one command and appends its reply to `out`. `args` has at least a name.
    pub(crate) fn run(
        &mut self,
        args: Args<'_>,
        session: &mut Session,
        peers: &dyn Peers,
        out: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(out, session.resp3);
        let Some(command) = self.table.find(args.at(0)).filter(|command| self.knows(command)) else {
            reply.error(&unknown_command(args));
            return;
        };
        if !command.accepts(args.len()) {
            reply.error(&wrong_arity(command.name));
            return;
        }
        if !session.authenticated && !command.before_auth {
            reply.error("NOAUTH Authentication required.");
            return;
        }
        session.last_command = command.name;
        self.store.select(session.db);
        let mark = reply.mark();
        let (store, settings) = (&mut self.store, &mut self.settings);
        let mut call = Call { command, args, store, session, settings, peers, reply };
        if let Err(failure) = (command.run)(&mut call) {
            call.reply.rewind(mark);
            call.reply.error(&describe(&failure, command.name));
        }
    }

    fn knows(&self, command: &Command) -> bool {
        !(self.settings.resp2_only && command.name == "hello")
    }
}

fn describe(failure: &Failure, command: &str) -> Cow<'static, str> {
    Cow::Borrowed(match failure {
        Failure::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
        Failure::Syntax => "ERR syntax error",
        Failure::NotInteger => "ERR value is not an integer or out of range",
        Failure::NotFloat => "ERR value is not a valid float",
        Failure::NoSuchKey => "ERR no such key",
        Failure::Arity => return Cow::Owned(wrong_arity(command)),
        Failure::Text(text) => return text.clone(),
    })
}

pub(crate) fn wrong_arity(command: &str) -> String {
    format!("ERR wrong number of arguments for '{command}' command")
}

/// The real server quotes the name and as many arguments as fit into 128 bytes.
pub(crate) fn unknown_command(args: Args<'_>) -> String {
    let mut beginning = String::new();
    for arg in args.from(1) {
        if beginning.len() >= 128 {
            break;
        }
        let shown = &arg[..arg.len().min(128 - beginning.len())];
        beginning.push_str(&format!("'{}' ", String::from_utf8_lossy(shown)));
    }
    let name = args.at(0);
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    format!("ERR unknown command '{name}', with args beginning with: {beginning}")
}
