//! Texts from outside: connection strings, errors of servers, names of commands.

use super::super::options::ConnectOptions;
use crate::buf::{Log, Transmit};
use crate::command::{Command, Raw};
use crate::connection::{ConnectionConfig, Endpoint};
use crate::error::ServerError;
use crate::resp::fuzzing::{Input, model};
use crate::resp::{Encoder, Limits, Value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What no error may repeat.
const SECRET: &str = "hunter2";

/// A choice, and a text.
pub fn text(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.below(8);
    let words: Vec<u8> = input.rest().to_vec();
    let text = String::from_utf8_lossy(&words);
    match choice {
        0 => drop(options(&text, false)),
        1 => drop(options(&format!("redis://{text}"), false)),
        2 => drop(options(&format!("unix://{text}"), false)),
        3 => drop(options(&format!("redis://u:{SECRET}@{text}"), !text.contains(SECRET))),
        4 => drop(options(&format!("unix://u:{SECRET}@{text}"), !text.contains(SECRET))),
        5 => parts(&text),
        6 => server_error(&text),
        _ => command(&text),
    }
}

/// What a connection string says, if it is one. Where it has a secret, in its password alone, that is not repeated.
fn options(text: &str, has_secret: bool) -> Option<ConnectionConfig> {
    let options = ConnectOptions::try_from(text);
    let told = match &options {
        Ok(options) => format!("{options:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!has_secret || !told.contains(SECRET), "{told} repeats a password");
    let options = options.ok()?;
    options.validate().ok()?;
    Some(options.connection_config())
}

/// What is encoded into a connection string is read from it.
fn parts(text: &str) {
    let mut parts = text.splitn(3, ' ');
    let mut part = || parts.next().unwrap_or_default().replace('\0', "");
    let (user, password, name) = (part(), part(), part());
    let encode = |part: &str| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string();
    let port = 1 + text.len() as u16 % 9999;
    let authority = format!("{}:{}@", encode(&user), encode(&password));
    let query = if name.is_empty() { String::new() } else { format!("?clientName={}", encode(&name)) };
    for (uri, endpoint) in [
        (format!("redis://{authority}cache:{port}/7{query}"), Endpoint::Tcp { host: "cache".into(), port }),
        (format!("unix://{authority}/run/s{query}"), Endpoint::Unix("/run/s".into())),
    ] {
        let Some(config) = options(&uri, false) else {
            assert!(!name.bytes().all(|byte| byte.is_ascii_graphic()), "refused: {uri}");
            continue;
        };
        assert_eq!(config.endpoint, endpoint);
        assert_eq!(config.client_name.as_deref().unwrap_or_default(), name);
        // An empty user is none; neither of them is no log-in at all.
        let Some(credentials) = config.credentials else {
            assert!(user.is_empty() && password.is_empty());
            continue;
        };
        assert_eq!(credentials.username.as_deref().unwrap_or_default(), user);
        assert_eq!(credentials.password.reveal(), password);
    }
}

fn server_error(text: &str) {
    let (secret, text) = text.split_once(' ').unwrap_or_default();
    let error = ServerError::parse(text, None);
    assert!(text.starts_with(error.message()) && error.message().starts_with(error.code()));
    assert!(!error.code().contains(' '));
    assert!(!error.message().contains("with args beginning with:"), "{error} repeats arguments");
    let _ = (error.delivery(), error.is_transient());
    let told = error.without(secret);
    let withheld = "ERR (text withheld: it repeats the password)";
    let is_told = told.message().contains(secret) && !withheld.contains(secret);
    assert!(secret.is_empty() || !is_told, "{told:?} repeats a password");
    assert!(told.message().starts_with(told.code()));
}

/// A command by name is its words, the first in upper case; whether it may pass does not depend on letters' case.
fn command(text: &str) {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let command = Raw::new(text);
    let passes = command.check(false).is_ok();
    assert_eq!(passes, Raw::new(&text.to_ascii_lowercase()).check(false).is_ok());
    assert!(!passes || !words.is_empty() && command.check(true).is_ok());
    let mut log = Log::new(64);
    let mut encoder = Encoder::new(&mut log);
    command.encode(&mut encoder);
    assert!(encoder.is_whole());
    let mut slices = Transmit::new();
    log.slices(0, log.end(), &mut slices);
    let wire: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    let found = model::frame(&wire, Limits::default(), false).expect("a command is legal");
    let first = words.first().copied().unwrap_or_default().to_ascii_uppercase();
    let rest = words.iter().skip(1).map(|word| Value::Bulk(word.as_bytes().to_vec()));
    assert_eq!(found.value, Value::Array(std::iter::once(Value::Bulk(first.into())).chain(rest).collect()));
}
