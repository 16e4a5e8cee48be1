//! The table of commands.
//!
//! **Idea.** What a command is called, how many arguments it takes and which function runs it are data. Adding a command
//! is one line here and one function in its family's file.
//!
//! **Invariant.** Names are lower case and unique; the arity counts the name, and is negative for "at least".

use super::hasher::BuildFastHasher;
use super::{Call, Outcome, hashes, keys, lists, ranges, server, sessions, sets, strings, zsets};
use std::collections::HashMap;

/// No command name is longer.
const NAME_BYTES_MAX: usize = 32;

/// One row of the table.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) arity: i32,
    pub(crate) run: fn(&mut Call<'_>) -> Outcome,
    /// Allowed before the client has authenticated.
    pub(crate) before_auth: bool,
}

impl Command {
    pub(crate) fn accepts(&self, count: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { count >= least } else { count == least }
    }
}

const fn row(name: &'static str, arity: i32, run: fn(&mut Call<'_>) -> Outcome) -> Command {
    Command { name, arity, run, before_auth: false }
}

const fn open(name: &'static str, arity: i32, run: fn(&mut Call<'_>) -> Outcome) -> Command {
    Command { name, arity, run, before_auth: true }
}

/// Every command that the server knows.
pub(crate) static COMMANDS: &[Command] = &[
    // The connection.
    row("ping", -1, sessions::ping),
    row("echo", 2, sessions::echo),
    open("hello", -1, sessions::hello),
    open("auth", -2, sessions::auth),
    open("quit", -1, sessions::quit),
    open("reset", 1, sessions::reset),
    row("select", 2, sessions::select),
    row("client", -2, sessions::client),
    // The server.
    row("command", -1, server::command),
    row("config", -2, server::config),
    row("info", -1, server::info),
    row("dbsize", 1, server::dbsize),
    row("flushdb", -1, server::flushdb),
    row("flushall", -1, server::flushall),
    row("time", 1, server::time),
    row("role", 1, server::role),
    // Strings.
    row("get", 2, strings::get),
    row("set", -3, strings::set),
    row("getdel", 2, strings::getdel),
    row("getex", -2, strings::getex),
    row("getset", 3, strings::getset),
    row("setnx", 3, strings::setnx),
    row("setex", 4, strings::setex),
    row("psetex", 4, strings::psetex),
    row("mget", -2, strings::mget),
    row("mset", -3, strings::mset),
    row("msetnx", -3, strings::msetnx),
    row("append", 3, strings::append),
    row("strlen", 2, strings::strlen),
    row("getrange", 4, ranges::getrange),
    row("setrange", 4, ranges::setrange),
    row("incr", 2, strings::incr),
    row("incrby", 3, strings::incrby),
    row("decr", 2, strings::decr),
    row("decrby", 3, strings::decrby),
    row("incrbyfloat", 3, strings::incrbyfloat),
    // Keys.
    row("del", -2, keys::del),
    row("unlink", -2, keys::del),
    row("exists", -2, keys::exists),
    row("touch", -2, keys::exists),
    row("expire", -3, keys::expire),
    row("pexpire", -3, keys::pexpire),
    row("expireat", -3, keys::expireat),
    row("pexpireat", -3, keys::pexpireat),
    row("ttl", 2, keys::ttl),
    row("pttl", 2, keys::pttl),
    row("persist", 2, keys::persist),
    row("type", 2, keys::type_of),
    row("rename", 3, keys::rename),
    row("keys", 2, keys::keys),
    row("scan", -2, keys::scan),
    // Hashes.
    row("hset", -4, hashes::hset),
    row("hsetnx", 4, hashes::hsetnx),
    row("hget", 3, hashes::hget),
    row("hmget", -3, hashes::hmget),
    row("hgetall", 2, hashes::hgetall),
    row("hdel", -3, hashes::hdel),
    row("hexists", 3, hashes::hexists),
    row("hlen", 2, hashes::hlen),
    row("hkeys", 2, hashes::hkeys),
    row("hvals", 2, hashes::hvals),
    row("hincrby", 4, hashes::hincrby),
    // Lists.
    row("lpush", -3, lists::lpush),
    row("rpush", -3, lists::rpush),
    row("lpop", -2, lists::lpop),
    row("rpop", -2, lists::rpop),
    row("llen", 2, lists::llen),
    row("lrange", 4, lists::lrange),
    row("lindex", 3, lists::lindex),
    row("lrem", 4, lists::lrem),
    row("ltrim", 4, lists::ltrim),
    // Sets.
    row("sadd", -3, sets::sadd),
    row("srem", -3, sets::srem),
    row("smembers", 2, sets::smembers),
    row("sismember", 3, sets::sismember),
    row("scard", 2, sets::scard),
    // Sorted sets.
    row("zadd", -4, zsets::zadd),
    row("zincrby", 4, zsets::zincrby),
    row("zrem", -3, zsets::zrem),
    row("zscore", 3, zsets::zscore),
    row("zrank", -3, zsets::zrank),
    row("zcard", 2, zsets::zcard),
    row("zrange", -4, zsets::zrange),
];

/// Finds rows by name.
pub(crate) struct Table {
    by_name: HashMap<&'static [u8], &'static Command, BuildFastHasher>,
}

impl Default for Table {
    fn default() -> Self {
        Self { by_name: COMMANDS.iter().map(|command| (command.name.as_bytes(), command)).collect() }
    }
}

impl Table {
    /// The row of `name`, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_lower_case_and_found_in_any_case() {
        let table = Table::default();
        assert_eq!(table.by_name.len(), COMMANDS.len());
        for command in COMMANDS {
            assert!(
                command.name.len() <= NAME_BYTES_MAX
                    && !command.name.bytes().any(|byte| byte.is_ascii_uppercase())
            );
            assert!(std::ptr::eq(table.find(command.name.to_uppercase().as_bytes()).unwrap(), command));
        }
        assert!(table.find(&[b'x'; 100]).is_none());
    }
}
