//! Commands about the server: INFO, COMMAND, CONFIG, TIME, ROLE and emptying databases.
//!
//! **Idea.** Only what clients and health checks read; the facts that exist here are true (keys, port, command count), the
//! others are the defaults of a fresh server.

use super::table::{COMMANDS, Command, Table};
use super::{Call, Failure, Outcome, glob};
use std::fmt::Write as _;

/// The version whose wording is followed.
pub(super) const VERSION: &str = "7.4.0";

const CONFIG_DEFAULTS: &[(&str, &str)] = &[
    ("appendonly", "no"),
    ("databases", "16"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("notify-keyspace-events", ""),
    ("proto-max-bulk-len", "536870912"),
    ("save", ""),
    ("timeout", "0"),
];

pub(super) fn dbsize(call: &mut Call<'_>) -> Outcome {
    let count = call.store.keys().count();
    call.reply.count(count);
    Ok(())
}

pub(super) fn flushdb(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    call.store.flush();
    call.reply.ok();
    Ok(())
}

pub(super) fn flushall(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    call.store.flush_all();
    call.reply.ok();
    Ok(())
}

fn check_flush(call: &Call<'_>) -> Outcome {
    let known = |mode: &[u8]| mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC");
    if call.args.len() > 2 || call.args.get(1).is_some_and(|mode| !known(mode)) {
        return Err(Failure::Syntax);
    }
    Ok(())
}

pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let now = call.store.now;
    call.reply.array(2);
    call.reply.bulk(now.div_euclid(1000).to_string().as_bytes());
    call.reply.bulk((now.rem_euclid(1000) * 1000).to_string().as_bytes());
    Ok(())
}

pub(super) fn role(call: &mut Call<'_>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let all = call.args.len() == 1;
    let wanted = |section: &str| {
        all || call.args.from(1).any(|arg| {
            let any =
                [&b"all"[..], b"default", b"everything"].iter().any(|word| arg.eq_ignore_ascii_case(word));
            any || arg.eq_ignore_ascii_case(section.as_bytes())
        })
    };
    let port = call.settings.port;
    let mut sections = vec![
        ("Server", format!("redis_version:{VERSION}\r\nredis_mode:standalone\r\ntcp_port:{port}\r\n")),
        ("Persistence", "loading:0\r\n".to_owned()),
        ("Replication", "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n".to_owned()),
        ("Cluster", "cluster_enabled:0\r\n".to_owned()),
    ];
    let mut keyspace = String::new();
    for index in 0..super::store::DATABASES {
        call.store.select(index);
        let (mut keys, mut expires) = (0, 0);
        for (_, entry) in call.store.keys() {
            keys += 1;
            expires += u64::from(entry.expires_at.is_some());
        }
        if keys > 0 {
            let _ = write!(keyspace, "db{index}:keys={keys},expires={expires},avg_ttl=0\r\n");
        }
    }
    sections.push(("Keyspace", keyspace));
    let shown: Vec<String> = sections
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, body)| format!("# {name}\r\n{body}"))
        .collect();
    call.reply.verbatim(&shown.join("\r\n"));
    Ok(())
}

pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    let subcommand = call.args.at(1).to_ascii_lowercase();
    match (&*subcommand, call.args.len()) {
        (b"get", 3..) => config_get(call),
        (b"set", 4..) if call.args.len().is_multiple_of(2) => return config_set(call),
        (b"resetstat", 2) => call.reply.ok(),
        (b"get" | b"set" | b"resetstat", _) => {
            let full = format!("config|{}", String::from_utf8_lossy(&subcommand));
            return Err(Failure::text(super::wrong_arity(&full)));
        }
        _ => {
            let given = String::from_utf8_lossy(call.args.at(1)).into_owned();
            return Err(Failure::text(format!("ERR unknown subcommand '{given}'. Try CONFIG HELP.")));
        }
    }
    Ok(())
}

fn config_get(call: &mut Call<'_>) {
    let mut found = Vec::new();
    for (name, default) in CONFIG_DEFAULTS {
        let wanted = |pattern: &[u8]| glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes());
        if call.args.from(2).any(wanted) {
            found.push((*name, call.settings.config.get(*name).map_or(*default, String::as_str)));
        }
    }
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
}

fn config_set(call: &mut Call<'_>) -> Outcome {
    let mut changes = Vec::new();
    for at in (2..call.args.len()).step_by(2) {
        let name = String::from_utf8_lossy(call.args.at(at)).to_ascii_lowercase();
        if !CONFIG_DEFAULTS.iter().any(|(known, _)| *known == name) {
            return Err(Failure::text(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        }
        changes.push((name, String::from_utf8_lossy(call.args.at(at + 1)).into_owned()));
    }
    call.settings.config.extend(changes);
    call.reply.ok();
    Ok(())
}

pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let Some(subcommand) = call.args.get(1) else {
        call.reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| describe(call, command));
        return Ok(());
    };
    match &*subcommand.to_ascii_lowercase() {
        b"count" => call.reply.count(COMMANDS.len()),
        b"docs" => call.reply.map(0),
        b"info" => {
            let table = Table::default();
            call.reply.array(call.args.len() - 2);
            for name in call.args.from(2) {
                match table.find(name) {
                    Some(command) => describe(call, command),
                    None => call.reply.null_array(),
                }
            }
        }
        _ => {
            let given = String::from_utf8_lossy(subcommand).into_owned();
            return Err(Failure::text(format!("ERR unknown subcommand '{given}'. Try COMMAND HELP.")));
        }
    }
    Ok(())
}

/// Name and arity; flags and key positions are not modelled.
fn describe(call: &mut Call<'_>, command: &Command) {
    let reply = &mut call.reply;
    reply.array(6);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    reply.set(0);
    reply.integer(0);
    reply.integer(0);
    reply.integer(0);
}
