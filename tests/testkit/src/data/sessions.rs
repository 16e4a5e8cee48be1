//! Commands about the connection itself: HELLO, AUTH, SELECT, CLIENT, PING, QUIT.
//!
//! **Problem.** Handshakes differ between server versions in exactly these replies, and clients branch on their words.
//!
//! **Invariant.** A refused HELLO changes nothing: neither protocol, nor user, nor name.

use super::number::{integer, parse_integer};
use super::store::DATABASES;
use super::{Call, Failure, Outcome, wrong_arity};

const NOT_AUTHENTICATED: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
    AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD_CONFIGURED: &str = "ERR AUTH <password> called without any password configured for the default user. Are you \
    sure your configuration is correct?";

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.args.at(1)),
        _ => return Err(Failure::Arity),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Outcome {
    call.reply.bulk(call.args.at(1));
    Ok(())
}

pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.session.quits = true;
    call.reply.ok();
    Ok(())
}

pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.db = 0;
    call.session.resp3 = false;
    call.session.name.clear();
    call.session.user = "default".to_owned();
    call.session.authenticated = call.settings.users.is_empty();
    call.reply.simple("RESET");
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    let index = usize::try_from(integer(call.args.at(1))?).ok().filter(|index| *index < DATABASES);
    call.session.db = index.ok_or(Failure::text("ERR DB index is out of range"))?;
    call.reply.ok();
    Ok(())
}

pub(super) fn auth(call: &mut Call<'_>) -> Outcome {
    let (user, password) = match call.args.len() {
        2 if call.settings.users.is_empty() => return Err(Failure::text(NO_PASSWORD_CONFIGURED)),
        2 => (&b"default"[..], call.args.at(1)),
        3 => (call.args.at(1), call.args.at(2)),
        _ => return Err(Failure::Syntax),
    };
    let user = verified_user(call, user, password)?;
    log_in(call, user);
    call.reply.ok();
    Ok(())
}

/// The user's name, if the password is right. Without configured users, `default` takes every password.
fn verified_user(call: &Call<'_>, user: &[u8], password: &[u8]) -> Result<String, Failure> {
    let users = &call.settings.users;
    let right = |(name, word): &(String, String)| name.as_bytes() == user && word.as_bytes() == password;
    if users.iter().any(right) || (users.is_empty() && user == b"default") {
        return Ok(String::from_utf8_lossy(user).into_owned());
    }
    Err(Failure::text(WRONG_PASSWORD))
}

fn log_in(call: &mut Call<'_>, user: String) {
    call.session.user = user;
    call.session.authenticated = true;
}

pub(super) fn hello(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut resp3 = call.session.resp3;
    if let Some(version) = args.get(1) {
        resp3 = match parse_integer(version) {
            None => return Err(Failure::text("ERR Protocol version is not an integer or out of range")),
            Some(2) => false,
            Some(3) if !call.settings.refuses_resp3 => true,
            Some(_) => return Err(Failure::text("NOPROTO unsupported protocol version")),
        };
    }
    let (mut user, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = args.get(at) {
        if option.eq_ignore_ascii_case(b"AUTH") && at + 2 < args.len() {
            user = Some(verified_user(call, args.at(at + 1), args.at(at + 2))?);
            at += 3;
        } else if option.eq_ignore_ascii_case(b"SETNAME") && at + 1 < args.len() {
            name = Some(valid_name(args.at(at + 1))?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Failure::text(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if !call.session.authenticated && user.is_none() {
        return Err(Failure::text(NOT_AUTHENTICATED));
    }
    if let Some(user) = user {
        log_in(call, user);
    }
    if let Some(name) = name {
        call.session.name = name;
    }
    call.session.resp3 = resp3;
    call.reply.set_resp3(resp3);
    write_hello(call);
    Ok(())
}

fn write_hello(call: &mut Call<'_>) {
    let reply = &mut call.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(super::server::VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if call.session.resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(call.session.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

fn valid_name(name: &[u8]) -> Result<String, Failure> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(Failure::text("ERR Client names cannot contain spaces, newlines or special characters."));
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    let subcommand = call.args.at(1).to_ascii_lowercase();
    let arity = |full: &str, right: bool| if right { Ok(()) } else { Err(Failure::text(wrong_arity(full))) };
    let count = call.args.len();
    match &*subcommand {
        b"setname" => {
            arity("client|setname", count == 3)?;
            call.session.name = valid_name(call.args.at(2))?;
            call.reply.ok();
        }
        b"getname" => {
            arity("client|getname", count == 2)?;
            let name = Some(call.session.name.as_bytes()).filter(|name| !name.is_empty());
            call.reply.bulk_or_null(name);
        }
        b"id" => {
            arity("client|id", count == 2)?;
            call.reply.integer(call.session.id as i64);
        }
        b"setinfo" => {
            arity("client|setinfo", count == 4)?;
            set_info(call)?;
        }
        b"info" => {
            arity("client|info", count == 2)?;
            call.reply.verbatim(&call.session.describe());
        }
        b"list" => list(call)?,
        _ => {
            let subcommand = String::from_utf8_lossy(call.args.at(1)).into_owned();
            return Err(Failure::text(format!("ERR unknown subcommand '{subcommand}'. Try CLIENT HELP.")));
        }
    }
    Ok(())
}

fn set_info(call: &mut Call<'_>) -> Outcome {
    let (attribute, value) = (call.args.at(2), call.args.at(3));
    let field = if attribute.eq_ignore_ascii_case(b"LIB-NAME") {
        &mut call.session.library_name
    } else if attribute.eq_ignore_ascii_case(b"LIB-VER") {
        &mut call.session.library_version
    } else {
        let attribute = String::from_utf8_lossy(attribute);
        return Err(Failure::text(format!("ERR Unrecognized option '{attribute}'")));
    };
    if !value.iter().all(u8::is_ascii_graphic) {
        let attribute = String::from_utf8_lossy(attribute);
        return Err(Failure::text(format!(
            "ERR {attribute} cannot contain spaces, newlines or special characters."
        )));
    }
    *field = String::from_utf8_lossy(value).into_owned();
    call.reply.ok();
    Ok(())
}

fn list(call: &mut Call<'_>) -> Outcome {
    let mut wanted = None;
    if call.args.len() > 2 {
        if !call.args[2].eq_ignore_ascii_case(b"ID") || call.args.len() == 3 {
            return Err(Failure::Syntax);
        }
        let invalid = || Failure::text("ERR Invalid client ID");
        let ids: Result<Vec<_>, _> =
            call.args.from(3).map(|id| parse_integer(id).ok_or_else(invalid)).collect();
        wanted = Some(ids?);
    }
    let mut lines = vec![(call.session.id, call.session.describe())];
    call.peers.each(&mut |peer| lines.push((peer.id, peer.describe())));
    lines.retain(|(id, _)| wanted.as_ref().is_none_or(|ids| ids.contains(&(*id as i64))));
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    call.reply.verbatim(&text);
    Ok(())
}
