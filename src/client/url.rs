//! Connection strings: `redis://[user:password@]host[:port][/database]` and `unix://[user:password@]/path`.

use super::options::ConnectOptions;
use crate::connection::Protocol;
use crate::error::{Error, Result};
use percent_encoding::percent_decode_str;
use std::str::FromStr;
use std::time::Duration;

const DEFAULT_PORT: u16 = 6379;

impl TryFrom<&str> for ConnectOptions {
    type Error = Error;

    /// [`Error::InvalidArgument`] names the part at fault, never its value.
    fn try_from(text: &str) -> Result<Self> {
        if let Some(rest) = text.strip_prefix("unix://") {
            return parse_unix(rest);
        }
        let url = url::Url::parse(text).map_err(|error| {
            let hint = "write redis://[[user:]password@]host[:port][/database] or unix:///path, and encode /, ?, #, @ \
                        and : of a user or password as %2F, %3F, %23, %40 and %3A";
            invalid("connection_string", format!("{error}; {hint}"))
        })?;
        match url.scheme() {
            "redis" => {}
            "rediss" => {
                return Err(invalid("connection_string", "TLS (rediss://) is not part of this version"));
            }
            _ => return Err(invalid("connection_string", "the scheme must be redis or unix")),
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = decode("host", host.ok_or_else(|| invalid("host", "a host is needed"))?)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        if host.contains(',') {
            return Err(invalid("host", "a URI names exactly one endpoint"));
        }
        if url.port() == Some(0) {
            return Err(invalid("port", "it must be 1 to 65535"));
        }
        if url.fragment().is_some() {
            return Err(invalid(
                "connection_string",
                "a fragment (#) has no meaning here; encode a # of a password as %23",
            ));
        }
        let mut options = ConnectOptions::tcp(host, url.port().unwrap_or(DEFAULT_PORT));
        // The parser drops an empty password, and with it the colon that makes a user of what stands before it.
        let password = url.password().or(ends_with_colon(text).then_some(""));
        options = user_info(options, url.username(), password)?;
        let path = url.path().trim_start_matches('/');
        if !path.is_empty() {
            options =
                options.database(number("db", path).map_err(|_| invalid("db", "the database is a number"))?);
        }
        query(options, url.query().unwrap_or_default())
    }
}

impl TryFrom<String> for ConnectOptions {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.as_str().try_into()
    }
}

impl TryFrom<&String> for ConnectOptions {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        text.as_str().try_into()
    }
}

impl FromStr for ConnectOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.try_into()
    }
}

fn parse_unix(rest: &str) -> Result<ConnectOptions> {
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let slash =
        rest.find('/').ok_or_else(|| invalid("connection_string", "unix:// needs an absolute path"))?;
    let (authority, path) = rest.split_at(slash);
    let options = ConnectOptions::unix(decode("path", path)?);
    let options = match authority.strip_suffix('@') {
        Some(user_info_text) => {
            let (user, password) = match user_info_text.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (user_info_text, None),
            };
            user_info(options, user, password)?
        }
        None if authority.is_empty() => options,
        None => return Err(invalid("host", "unix:// takes no host: write unix:///path")),
    };
    query(options, parameters)
}

/// True for `user:@` in front of a host.
fn ends_with_colon(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user_info, _)| user_info.ends_with(':'))
}

/// `user:password@`, `:password@`, or `password@` (CONN-062).
fn user_info(options: ConnectOptions, user: &str, password: Option<&str>) -> Result<ConnectOptions> {
    let user = decode("username", user)?;
    Ok(match password {
        None if user.is_empty() => options,
        None => options.password(user),
        Some("") if user.is_empty() => options,
        Some(password) => {
            let options = options.password(decode("password", password)?);
            if user.is_empty() { options } else { options.username(user) }
        }
    })
}

fn query(mut options: ConnectOptions, query: &str) -> Result<ConnectOptions> {
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        options = match name.to_ascii_lowercase().as_str() {
            "db" => options.database(number("db", &value)?),
            "clientname" => options.client_name(value),
            "connections" => options.connections(number("connections", &value)? as u32),
            "connecttimeoutms" => options.connect_timeout(millis("connectTimeoutMs", &value)?),
            "commandtimeoutms" => options.command_timeout(Some(millis("commandTimeoutMs", &value)?)),
            "responsetimeoutms" => options.idle_read_timeout(Some(millis("responseTimeoutMs", &value)?)),
            "protocol" => options.protocol(protocol(&value)?),
            "allowadmin" => options.allow_admin(boolean("allowAdmin", &value)?),
            // A `?` in a password that is not encoded begins a query: what is no plain word is not repeated.
            _ if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Err(invalid(name.into_owned(), "this parameter is not known"));
            }
            _ => return Err(invalid("connection_string", "a query parameter is not known")),
        };
    }
    Ok(options)
}

fn protocol(value: &str) -> Result<Protocol> {
    match value.to_ascii_lowercase().as_str() {
        "auto" => Ok(Protocol::Auto),
        "2" | "resp2" => Ok(Protocol::Resp2),
        "3" | "resp3" => Ok(Protocol::Resp3),
        _ => Err(invalid("protocol", "it must be auto, 2 or 3")),
    }
}

fn boolean(name: &'static str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, "it must be true or false")),
    }
}

fn number(name: &'static str, value: &str) -> Result<i64> {
    value.parse::<i32>().map(i64::from).map_err(|_| invalid(name, "it must be a 32-bit integer"))
}

fn millis(name: &'static str, value: &str) -> Result<Duration> {
    let millis = u64::try_from(number(name, value)?).map_err(|_| invalid(name, "it must not be negative"))?;
    Ok(Duration::from_millis(millis))
}

fn decode(part: &'static str, text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| invalid(part, "it is not UTF-8 after decoding"))
}

fn invalid(
    what: impl Into<std::borrow::Cow<'static, str>>,
    why: impl Into<std::borrow::Cow<'static, str>>,
) -> Error {
    Error::invalid(what, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Endpoint;

    fn parse(text: &str) -> crate::connection::ConnectionConfig {
        let options = ConnectOptions::try_from(text).unwrap();
        options.validate().unwrap();
        options.connection_config()
    }

    fn fault(text: &str) -> String {
        match ConnectOptions::try_from(text).map(|options| options.validate().map(|()| options)) {
            Err(Error::InvalidArgument(error)) => error.what.to_string(),
            Ok(Err(Error::Config(error))) => error.what.to_string(),
            other => panic!("{text}: expected an error, got {other:?}"),
        }
    }

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.into(), port }
    }

    // CONN-060, CONN-061, CONN-062, CONN-088
    #[test]
    fn parts_of_a_uri() {
        let config = parse("redis://cache");
        assert_eq!((config.endpoint, config.credentials, config.database), (tcp("cache", 6379), None, 0));
        assert_eq!(parse("redis://[::1]:6380/1").endpoint, tcp("::1", 6380));
        assert_eq!(parse("redis://h/1?db=2").database, 2);
        let credentials = parse("redis://app:p%40ss@h").credentials.unwrap();
        assert_eq!((credentials.username.as_deref(), credentials.password.reveal()), (Some("app"), "p@ss"));
        for text in ["redis://:secret@h", "redis://secret@h"] {
            let credentials = parse(text).credentials.unwrap();
            assert_eq!((credentials.username, credentials.password.reveal()), (None, "secret"));
        }
    }

    // Found by fuzzing: the user was taken for the password.
    #[test]
    fn an_empty_password_is_one() {
        for text in ["redis://app:@h", "redis://app:@h/2?db=1", "unix://app:@/s"] {
            let credentials = parse(text).credentials.unwrap();
            assert_eq!((credentials.username.as_deref(), credentials.password.reveal()), (Some("app"), ""));
        }
        for text in ["redis://:@h", "redis://@h", "unix://:@/s", "unix://@/s"] {
            assert_eq!(parse(text).credentials, None, "{text}");
        }
    }

    // CONN-063, CONN-064, CONN-020
    #[test]
    fn parameters() {
        let config = parse(
            "redis://h?CLIENTNAME=a&connectTimeoutMs=5&commandTimeoutMs=6&responseTimeoutMs=7&protocol=RESP3",
        );
        assert_eq!(config.client_name.as_deref(), Some("a"));
        assert_eq!(config.connect_timeout, Duration::from_millis(5));
        assert_eq!(config.command_timeout, Some(Duration::from_millis(6)));
        assert_eq!(config.idle_read_timeout, Some(Duration::from_millis(7)));
        assert_eq!(config.protocol, Protocol::Resp3);
        assert_eq!(parse("redis://h?protocol=auto").protocol, parse("redis://h").protocol);
    }

    // CONN-141
    #[test]
    fn unix_sockets() {
        let config = parse("unix:///run/redis.sock?db=3");
        assert_eq!((config.endpoint, config.database), (Endpoint::Unix("/run/redis.sock".into()), 3));
        assert_eq!(parse("unix://:pw@/s").credentials.unwrap().password.reveal(), "pw");
        assert_eq!(fault("unix://host/s"), "host");
        assert_eq!(fault("unix://"), "connection_string");
    }

    // CONN-042, CONN-059, CONN-065, CONN-066, CONN-069
    #[test]
    fn bad_parts_are_named() {
        assert_eq!(fault("http://h"), "connection_string");
        assert_eq!(fault("redis://h?conections=2"), "conections");
        assert_eq!(fault("redis://h?connections=0"), "connections");
        assert_eq!(fault("redis://h?connections=9999999999"), "connections");
        assert_eq!(fault("redis://h?connections=-1"), "connections");
        assert_eq!(fault("redis://h/x"), "db");
        assert_eq!(fault("redis://h?protocol=9"), "protocol");
        assert_eq!(fault("redis://a,b"), "host");
        assert_eq!(fault("redis://"), "host");
        assert_eq!(fault("redis://h:0"), "port");
        assert_eq!(fault("redis://h:70000"), "connection_string");
        assert_eq!(fault("cache"), "connection_string");
    }

    // SYS-010
    #[test]
    fn no_error_repeats_a_password() {
        for text in
            ["redis://u:hunter2@", "redis://u:hunter2@h:99999", "redis://u:hunter2@h/x", "unix://hunter2@x/y"]
        {
            let error = ConnectOptions::try_from(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_options_or_an_error(text in ".{0,60}") {
            let _ = ConnectOptions::try_from(text.as_str());
            let _ = ConnectOptions::try_from(format!("redis://{text}").as_str());
            let _ = ConnectOptions::try_from(format!("unix://{text}").as_str());
        }
    }
}
