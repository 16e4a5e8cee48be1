//! Which commands a shared connection does not take: one table (CONN-033, CONN-142).
//!
//! A connection that many callers share must stay in the state in which set-up left it, and must answer in order
//! without waiting: a `BLPOP` would hold up everybody behind it, a `SELECT` would move everybody's keys. Commands that
//! can destroy data or a server's configuration pass only with `allow_admin`.

use crate::error::{CommandName, Error, InvalidError};

/// Why a command is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It waits on the server, and every caller behind it would wait too.
    Blocks,
    /// It changes the state of the connection, which other callers share.
    ConnectionState,
    /// It changes which replies come, or when.
    ReplyProtocol,
    /// It can destroy data or configuration and needs `allow_admin`.
    Admin,
}

impl Refusal {
    fn message(self) -> &'static str {
        match self {
            Refusal::Blocks => {
                "it blocks on the server and would hold up every caller of the shared connection"
            }
            Refusal::ConnectionState => {
                "it changes the state of the shared connection: options set name, database and user, and \
                 transactions are not part of this version"
            }
            Refusal::ReplyProtocol => {
                "it changes which replies the shared connection gets; subscriptions are not part of this version"
            }
            Refusal::Admin => "it is an administration command; the option `allow_admin` permits it",
        }
    }
}

use Refusal::*;

/// Sorted by name. An empty list of subcommands means every use of the command; `BLOCK` in [`BY_ARGUMENT`] is looked
/// for among the arguments instead.
#[rustfmt::skip]
const TABLE: &[(&str, &[&str], Refusal)] = &[
    ("ACL", &["DELUSER", "LOAD", "SAVE", "SETUSER"], Admin),
    ("ASKING", &[], ConnectionState),
    ("AUTH", &[], ConnectionState),
    ("BLMOVE", &[], Blocks),
    ("BLMPOP", &[], Blocks),
    ("BLPOP", &[], Blocks),
    ("BRPOP", &[], Blocks),
    ("BRPOPLPUSH", &[], Blocks),
    ("BZMPOP", &[], Blocks),
    ("BZPOPMAX", &[], Blocks),
    ("BZPOPMIN", &[], Blocks),
    ("CLIENT", &["CACHING", "CAPA", "IMPORT-SOURCE", "MAINT_NOTIFICATIONS", "NO-EVICT", "NO-TOUCH", "SETINFO", "SETNAME"], ConnectionState),
    ("CLIENT", &["REPLY", "TRACKING"], ReplyProtocol),
    ("CLIENT", &["KILL", "PAUSE", "UNPAUSE"], Admin),
    ("CLUSTER", &["ADDSLOTS", "ADDSLOTSRANGE", "BUMPEPOCH", "CANCELSLOTMIGRATIONS", "DELSLOTS", "DELSLOTSRANGE",
        "FAILOVER", "FLUSHSLOT", "FLUSHSLOTS", "FORGET", "MEET", "MIGRATESLOTS", "MIGRATION", "REPLICATE", "RESET", "SAVECONFIG",
        "SET-CONFIG-EPOCH", "SETSLOT", "SYNCSLOTS"], Admin),
    ("CONFIG", &["RESETSTAT", "REWRITE", "SET"], Admin),
    ("DEBUG", &[], Admin),
    ("DISCARD", &[], ConnectionState),
    ("EXEC", &[], ConnectionState),
    ("FAILOVER", &[], Admin),
    ("FLUSHALL", &[], Admin),
    ("FLUSHDB", &[], Admin),
    ("FUNCTION", &["FLUSH"], Admin),
    ("HELLO", &[], ConnectionState),
    ("MODULE", &["LOAD", "LOADEX", "UNLOAD"], Admin),
    ("MONITOR", &[], ReplyProtocol),
    ("MULTI", &[], ConnectionState),
    ("PSUBSCRIBE", &[], ReplyProtocol),
    ("PSYNC", &[], ReplyProtocol),
    ("PUNSUBSCRIBE", &[], ReplyProtocol),
    ("QUIT", &[], ConnectionState),
    ("READONLY", &[], ConnectionState),
    ("READWRITE", &[], ConnectionState),
    ("REPLCONF", &[], ReplyProtocol),
    ("REPLICAOF", &[], Admin),
    ("RESET", &[], ConnectionState),
    ("RESTORE-ASKING", &[], ConnectionState),
    ("SCRIPT", &["DEBUG"], ConnectionState),
    ("SCRIPT", &["FLUSH"], Admin),
    ("SELECT", &[], ConnectionState),
    ("SHUTDOWN", &[], Admin),
    ("SLAVEOF", &[], Admin),
    ("SSUBSCRIBE", &[], ReplyProtocol),
    ("SUBSCRIBE", &[], ReplyProtocol),
    ("SUNSUBSCRIBE", &[], ReplyProtocol),
    ("SWAPDB", &[], Admin),
    ("SYNC", &[], ReplyProtocol),
    ("UNSUBSCRIBE", &[], ReplyProtocol),
    ("UNWATCH", &[], ConnectionState),
    ("WAIT", &[], Blocks),
    ("WAITAOF", &[], Blocks),
    ("WATCH", &[], ConnectionState),
];

/// Commands that block only when this word is among their options. The options end at `STREAMS`: a stream's key may
/// be called anything.
const BY_ARGUMENT: &[(&str, &str)] = &[("XREAD", "BLOCK"), ("XREADGROUP", "BLOCK")];

/// Whether the shared connection refuses a command, and why. Names are compared without regard to case.
pub fn refusal<'a>(name: &str, mut args: impl Iterator<Item = &'a [u8]>) -> Option<Refusal> {
    let first_row = TABLE.partition_point(|(row, ..)| compare(row, name).is_lt());
    let rows = TABLE[first_row..].iter().take_while(|(row, ..)| row.eq_ignore_ascii_case(name));
    let mut subcommand = None;
    for (_, subcommands, refusal) in rows {
        if subcommands.is_empty() {
            return Some(*refusal);
        }
        let given = *subcommand.get_or_insert_with(|| args.next().unwrap_or_default());
        if subcommands.iter().any(|row| row.as_bytes().eq_ignore_ascii_case(given)) {
            return Some(*refusal);
        }
    }
    let (_, word) = BY_ARGUMENT.iter().find(|(row, _)| row.eq_ignore_ascii_case(name))?;
    // GROUP and the names of group and consumer stand before the options of XREADGROUP.
    args.skip(if name.len() > "XREAD".len() { 3 } else { 0 })
        .take_while(|arg| !arg.eq_ignore_ascii_case(b"STREAMS"))
        .any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
        .then_some(Blocks)
}

/// Whether the table has something to say about this name; the rest need no look at the arguments.
pub(super) fn is_listed(name: &str) -> bool {
    TABLE.binary_search_by(|(row, ..)| compare(row, name)).is_ok()
        || BY_ARGUMENT.iter().any(|(row, _)| row.eq_ignore_ascii_case(name))
}

fn compare(row: &str, name: &str) -> std::cmp::Ordering {
    row.bytes().cmp(name.bytes().map(|byte| byte.to_ascii_uppercase()))
}

/// The error for a refused command, or nothing when it may pass.
pub(super) fn check<'a>(
    name: &CommandName,
    args: impl Iterator<Item = &'a [u8]> + Clone,
    allow_admin: bool,
) -> Result<(), Error> {
    let refusal = match refusal(name, args.clone()) {
        None => return Ok(()),
        Some(Refusal::Admin) if allow_admin => return Ok(()),
        Some(refusal) => refusal,
    };
    // A subcommand belongs to the name; no other argument may get into an error.
    let rows = TABLE.iter().filter(|(row, ..)| row.eq_ignore_ascii_case(name));
    let mut subcommands = rows.flat_map(|(_, subcommands, _)| subcommands.iter());
    let given = args.take(1).next().unwrap_or_default();
    let name = match subcommands.find(|known| known.as_bytes().eq_ignore_ascii_case(given)) {
        Some(subcommand) => format!("{name} {subcommand}").into(),
        None => name.clone(),
    };
    Err(Error::InvalidArgument(Box::new(InvalidError::command(name, refusal.message()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Option<Refusal> {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        refusal(name, words.map(str::as_bytes))
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    // CONN-142
    #[test]
    fn commands_that_block_or_change_the_connection_are_refused() {
        for line in ["BLPOP q 0", "blmove a b LEFT LEFT 0", "WAIT 1 0", "XREAD COUNT 1 BLOCK 0 STREAMS s $"] {
            assert_eq!(ask(line), Some(Blocks), "{line}");
        }
        for line in
            ["XREADGROUP GROUP STREAMS c COUNT 2 block 5 STREAMS s >", "WAITAOF 1 0 0", "BZPOPMIN z 1"]
        {
            assert_eq!(ask(line), Some(Blocks), "{line}");
        }
        for line in [
            "SELECT 1",
            "HELLO 3",
            "AUTH x",
            "RESET",
            "QUIT",
            "MULTI",
            "EXEC",
            "DISCARD",
            "WATCH k",
            "UNWATCH",
            "READONLY",
            "READWRITE",
            "ASKING",
            "client setname x",
        ] {
            assert_eq!(ask(line), Some(ConnectionState), "{line}");
        }
        for line in [
            "SUBSCRIBE c",
            "psubscribe *",
            "SSUBSCRIBE c",
            "MONITOR",
            "CLIENT REPLY OFF",
            "CLIENT TRACKING ON",
            "SYNC",
            "PSYNC ? -1",
        ] {
            assert_eq!(ask(line), Some(ReplyProtocol), "{line}");
        }
    }

    // CONN-033
    #[test]
    fn administration_needs_the_option() {
        for line in [
            "FLUSHALL",
            "flushdb ASYNC",
            "CONFIG SET a b",
            "SHUTDOWN",
            "DEBUG SLEEP 1",
            "CLIENT KILL ID 1",
            "SCRIPT FLUSH",
            "FUNCTION FLUSH",
            "ACL SETUSER x",
            "CLUSTER RESET",
            "SWAPDB 0 1",
            "REPLICAOF NO ONE",
        ] {
            assert_eq!(ask(line), Some(Admin), "{line}");
        }
        let name = CommandName::from("FLUSHALL");
        let error = check(&name, std::iter::empty(), false).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument(e) if e.what == "FLUSHALL"));
        assert_eq!(error.delivery(), crate::Delivery::NotExecuted);
        check(&name, std::iter::empty(), true).unwrap();
        check(&CommandName::from("BLPOP"), std::iter::empty(), true).unwrap_err();
        let error =
            check(&CommandName::from("CONFIG"), [&b"set"[..], b"secret"].into_iter(), false).unwrap_err();
        assert!(error.to_string().starts_with("CONFIG SET is refused:"), "{error}");
    }

    #[test]
    fn everything_else_passes() {
        for line in [
            "GET k",
            "CONFIG GET *",
            "ACL LIST",
            "CLIENT INFO",
            "CLIENT",
            "CLUSTER SLOTS",
            "XREAD STREAMS BLOCK 0",
            "XREADGROUP GROUP BLOCK c STREAMS s >",
            "SCRIPT LOAD x",
            "NEWCMD",
            "",
            "Z",
        ] {
            assert_eq!(ask(line), None, "{line}");
        }
    }
}
