//! Options of a client, validated once, before any I/O (CONN-005).

use crate::connection::{ConnectionConfig, Credentials, Endpoint, Protocol};
use crate::error::{Error, Result};
use crate::io::{EngineOptions, Resolver, SocketOptions};
use crate::resp::Limits;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// How to reach a server and what to allow. A value: a client takes a snapshot of it.
///
/// Wherever options are asked for, a connection string will do:
/// `redis://[user:password@]host[:port][/database]` or `unix://[user:password@]/path`, percent-encoded, with parameters
/// behind `?` (names in any case; a parameter that is not known is an error):
///
/// | parameter | sets |
/// |---|---|
/// | `db` | [`database`](Self::database); wins over the path |
/// | `clientName` | [`client_name`](Self::client_name) |
/// | `connections` | [`connections`](Self::connections) |
/// | `connectTimeoutMs`, `commandTimeoutMs` | [`connect_timeout`](Self::connect_timeout), [`command_timeout`](Self::command_timeout) (which bounds replies of set-up too) |
/// | `responseTimeoutMs` | [`idle_read_timeout`](Self::idle_read_timeout) |
/// | `protocol` | [`protocol`](Self::protocol): `auto`, `2`, `3` |
/// | `allowAdmin` | [`allow_admin`](Self::allow_admin): `true`, `false` |
///
/// It stays on its thread (`!Send`); give each thread the string, or a function that makes the options.
///
/// ```
/// use respiral::ConnectOptions;
/// use std::time::Duration;
///
/// let options = ConnectOptions::tcp("127.0.0.1", 6379)
///     .database(2)
///     .client_name("billing")
///     .command_timeout(Some(Duration::from_secs(2)));
/// options.validate().unwrap();
///
/// let from_url: ConnectOptions = "redis://app:secret@cache.internal:6380/2".try_into().unwrap();
/// assert!(!format!("{from_url:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct ConnectOptions {
    endpoint: Endpoint,
    protocol: Protocol,
    credentials: Option<Credentials>,
    client_name: Option<Rc<str>>,
    database: i64,
    set_info: bool,
    connections: u32,
    connect_timeout: Duration,
    command_timeout: Option<Duration>,
    idle_read_timeout: Option<Duration>,
    allow_admin: bool,
    inflight_max: usize,
    queued_bytes_max: u64,
    write_buffer: usize,
    limits: Limits,
    socket: SocketOptions,
    engine: EngineOptions,
    resolver: Option<Rc<dyn Resolver>>,
}

/// Connections of one client at most: a completion carries the index in 16 bits, and no thread has use for more.
const CONNECTIONS_MAX: u32 = 16_384;

impl ConnectOptions {
    /// A server at a host name or IP address (without brackets) and a port.
    pub fn tcp(host: impl AsRef<str>, port: u16) -> Self {
        Self::new(Endpoint::Tcp { host: host.as_ref().into(), port })
    }

    /// A server at a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::new(Endpoint::Unix(path.into()))
    }

    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            protocol: Protocol::Auto,
            credentials: None,
            client_name: None,
            database: 0,
            set_info: true,
            connections: 1,
            connect_timeout: Duration::from_secs(10),
            command_timeout: Some(Duration::from_secs(10)),
            idle_read_timeout: None,
            allow_admin: false,
            inflight_max: 16_384,
            queued_bytes_max: 64 * 1024 * 1024,
            write_buffer: 64 * 1024,
            limits: Limits::default(),
            socket: SocketOptions::default(),
            engine: EngineOptions::default(),
            resolver: None,
        }
    }

    /// Which RESP version to speak. Default: [`Protocol::Auto`].
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Log in with a password, as the server's default user unless [`username`](Self::username) is given. Default:
    /// none.
    pub fn password(mut self, password: impl AsRef<str>) -> Self {
        let username = self.credentials.take().and_then(|credentials| credentials.username);
        self.credentials = Some(Credentials { username, password: password.as_ref().into() });
        self
    }

    /// Log in as this user; needs a [`password`](Self::password) too (an empty one counts). Default: none.
    pub fn username(mut self, username: impl AsRef<str>) -> Self {
        let password = self.credentials.take().map_or_else(|| "".into(), |credentials| credentials.password);
        self.credentials = Some(Credentials { username: Some(username.as_ref().into()), password });
        self
    }

    /// `CLIENT SETNAME` of every connection; no spaces or line ends. Default: none.
    pub fn client_name(mut self, name: impl AsRef<str>) -> Self {
        self.client_name = Some(name.as_ref().into());
        self
    }

    /// `SELECT` on every new connection when not 0; at least 0. Default: 0.
    pub fn database(mut self, database: i64) -> Self {
        self.database = database;
        self
    }

    /// Tell the server the library's name and version (`CLIENT SETINFO`). Default: yes.
    pub fn set_info(mut self, set_info: bool) -> Self {
        self.set_info = set_info;
        self
    }

    /// Connections that all callers of this client share: a fixed number, 1 to 16384. A process with a client on
    /// each of its threads has threads × connections sockets. Default: 1, which a thread rarely exceeds.
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// Bounds name look-up and connecting of each attempt, but not the replies of set-up: those have
    /// [`command_timeout`](Self::command_timeout), and this only without one. It also bounds the wait for a server that
    /// answers set-up with LOADING (most let set-up pass, and then commands are answered so: transient, not executed).
    /// More than zero. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Bounds each command, from its first poll to its reply, and each set-up reply; at least 1 ms, `None` never ends
    /// a command. Default: 10 s.
    pub fn command_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.command_timeout = timeout.into();
        self
    }

    /// Close a connection that owes replies and has received nothing for this long; at least 1 ms. Default: `None`, and then
    /// a network that falls silent is not noticed before the kernel's own limits (minutes): calls time out one by one.
    pub fn idle_read_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_read_timeout = timeout.into();
        self
    }

    /// Let commands pass that can destroy data or configuration (`FLUSHALL`, `CONFIG SET`, …). Default: no.
    pub fn allow_admin(mut self, allow: bool) -> Self {
        self.allow_admin = allow;
        self
    }

    /// Commands that are queued or await their reply, per connection; at least 1. More wait in line. Default: 16384.
    pub fn max_inflight_commands(mut self, commands: usize) -> Self {
        self.inflight_max = commands;
        self
    }

    /// Bytes of those commands, per connection; at least 1. A command may enter while the sum is below, so one large
    /// command may exceed it; more wait in line. Worst-case memory: this and one command. Default: 64 MiB.
    pub fn max_queued_bytes(mut self, bytes: u64) -> Self {
        self.queued_bytes_max = bytes;
        self
    }

    /// Bytes per chunk of a connection's outgoing log; at least 1. A handful of chunks is kept per connection. Default:
    /// 64 KiB.
    pub fn write_buffer(mut self, bytes: usize) -> Self {
        self.write_buffer = bytes;
        self
    }

    /// What a reply may measure. A reply beyond a limit closes its connection with
    /// [`Error::Protocol`](crate::Error::Protocol).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// TCP keepalive, off by default: idle time, interval between probes, probes until the connection is dead. Times
    /// in whole seconds, at least one; at least one probe. `None` leaves the system's value.
    pub fn tcp_keepalive(mut self, time: Duration, interval: Option<Duration>, retries: Option<u32>) -> Self {
        self.socket.keepalive = Some((time, interval, retries));
        self
    }

    /// Which I/O engine to run and with how many buffers.
    pub fn engine(mut self, engine: EngineOptions) -> Self {
        self.engine = engine;
        self
    }

    /// How host names become addresses. Default: a helper thread that asks the system.
    pub fn resolver(mut self, resolver: Rc<dyn Resolver>) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Checks every value; [`Error::Config`] names the option at fault. Connecting does this first.
    pub fn validate(&self) -> Result<()> {
        let ms = Duration::from_millis(1);
        if let Endpoint::Tcp { host, port } = &self.endpoint {
            require(!host.is_empty(), "endpoint", "a host name or address is needed")?;
            require(*port != 0, "endpoint", "the port must be 1 to 65535")?;
        }
        if let Endpoint::Unix(path) = &self.endpoint {
            let length = path.as_os_str().len();
            require((1..=107).contains(&length), "endpoint", "the path of a Unix socket has 1 to 107 bytes")?;
        }
        require(u32::try_from(self.database).is_ok(), "database", "it must be 0 to 4294967295")?;
        let named =
            |name: &Rc<str>| name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) && !name.is_empty();
        require(
            self.client_name.as_ref().is_none_or(named),
            "client_name",
            "only printable characters, no spaces",
        )?;
        require((1..=CONNECTIONS_MAX).contains(&self.connections), "connections", "it must be 1 to 16384")?;
        require(!self.connect_timeout.is_zero(), "connect_timeout", "it must be more than zero")?;
        require(
            self.command_timeout.is_none_or(|t| t >= ms),
            "command_timeout",
            "it must be at least 1 ms, or None",
        )?;
        require(
            self.idle_read_timeout.is_none_or(|t| t >= ms),
            "idle_read_timeout",
            "it must be at least 1 ms",
        )?;
        require(self.inflight_max >= 1, "max_inflight_commands", "it must be at least 1")?;
        require(self.queued_bytes_max >= 1, "max_queued_bytes", "it must be at least 1")?;
        let buffer = 1..=256 * 1024 * 1024;
        require(buffer.contains(&self.write_buffer), "write_buffer", "it must be 1 byte to 256 MiB")?;
        if let Some((time, interval, retries)) = self.socket.keepalive {
            let whole = |t: Duration| (1..=32_767).contains(&t.as_secs()) && t.subsec_nanos() == 0;
            require(whole(time), "tcp_keepalive", "the time must be whole seconds, at least one")?;
            require(
                interval.is_none_or(whole),
                "tcp_keepalive",
                "the interval must be whole seconds, at least one",
            )?;
            require(
                retries.is_none_or(|n| (1..=127).contains(&n)),
                "tcp_keepalive",
                "there must be 1 to 127 retries",
            )?;
        }
        let limits = &self.limits;
        let whole = limits.bulk_max >= 1
            && limits.line_max >= 64
            && limits.frame_max >= 64
            && limits.elements_max >= 1;
        require(
            whole && limits.depth_max >= 1,
            "limits",
            "each must be at least 1, lines and frames at least 64 bytes",
        )?;
        require(limits.frame_max <= u32::MAX as usize, "limits", "a frame must stay below 4 GiB")?;
        self.engine.validate()
    }

    pub(super) fn pool_size(&self) -> u16 {
        self.connections as u16
    }

    pub(super) fn is_admin_allowed(&self) -> bool {
        self.allow_admin
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.command_timeout
    }

    #[cfg(feature = "engine")]
    pub(crate) fn engine_options(&self) -> &EngineOptions {
        &self.engine
    }

    #[cfg(feature = "engine")]
    pub(crate) fn own_resolver(&self) -> Option<Rc<dyn Resolver>> {
        self.resolver.clone()
    }

    pub(super) fn connection_config(&self) -> ConnectionConfig {
        ConnectionConfig {
            endpoint: self.endpoint.clone(),
            protocol: self.protocol,
            credentials: self.credentials.clone(),
            client_name: self.client_name.clone(),
            database: self.database as u32,
            set_info: self.set_info,
            connect_timeout: self.connect_timeout,
            command_timeout: self.command_timeout,
            idle_read_timeout: self.idle_read_timeout,
            limits: self.limits,
            inflight_max: self.inflight_max,
            queued_bytes_max: self.queued_bytes_max,
            write_buffer: self.write_buffer,
            socket: self.socket,
        }
    }
}

fn require(holds: bool, option: &'static str, rule: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::config(option, rule)) }
}

impl From<&ConnectOptions> for ConnectOptions {
    fn from(options: &ConnectOptions) -> Self {
        options.clone()
    }
}

impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("endpoint", &self.endpoint)
            .field("protocol", &self.protocol)
            .field("credentials", &self.credentials)
            .field("client_name", &self.client_name)
            .field("database", &self.database)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("allow_admin", &self.allow_admin)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(options: ConnectOptions) -> String {
        match options.validate() {
            Err(Error::Config(error)) => error.what.to_string(),
            other => panic!("expected a config error, got {other:?}"),
        }
    }

    fn options() -> ConnectOptions {
        ConnectOptions::tcp("localhost", 6379)
    }

    // CONN-029, CONN-030, CONN-031, CONN-032, CONN-035, CONN-036, CONN-040
    #[test]
    fn defaults() {
        let options = options();
        options.validate().unwrap();
        let config = options.connection_config();
        assert_eq!(options.pool_size(), 1);
        assert_eq!(config.protocol, Protocol::Auto);
        assert_eq!(config.connect_timeout, Duration::from_secs(10));
        assert_eq!(config.command_timeout, Some(Duration::from_secs(10)));
        assert_eq!(config.idle_read_timeout, None);
        assert_eq!((config.database, config.client_name), (0, None));
        assert_eq!((config.write_buffer, config.inflight_max), (64 * 1024, 16_384));
        assert!(!options.is_admin_allowed());
    }

    // CONN-026, CONN-029, CONN-030, CONN-031, CONN-032, CONN-035, CONN-038, CONN-040
    #[test]
    fn values_out_of_range_name_their_option() {
        let micros = Duration::from_micros(999);
        assert_eq!(fault(ConnectOptions::tcp("h", 0)), "endpoint");
        assert_eq!(fault(ConnectOptions::tcp("", 1)), "endpoint");
        assert_eq!(fault(ConnectOptions::unix("")), "endpoint");
        assert_eq!(fault(ConnectOptions::unix("x".repeat(108))), "endpoint");
        assert_eq!(fault(options().connections(0)), "connections");
        assert_eq!(fault(options().connections(20_000)), "connections");
        assert_eq!(fault(options().connect_timeout(Duration::ZERO)), "connect_timeout");
        assert_eq!(fault(options().command_timeout(Some(micros))), "command_timeout");
        assert_eq!(fault(options().idle_read_timeout(Some(micros))), "idle_read_timeout");
        assert_eq!(fault(options().database(-1)), "database");
        assert_eq!(fault(options().client_name("two words")), "client_name");
        assert_eq!(fault(options().max_inflight_commands(0)), "max_inflight_commands");
        assert_eq!(fault(options().max_queued_bytes(0)), "max_queued_bytes");
        assert_eq!(fault(options().write_buffer(0)), "write_buffer");
        assert_eq!(fault(options().tcp_keepalive(micros, None, None)), "tcp_keepalive");
        options().command_timeout(None).validate().unwrap();
    }
}
