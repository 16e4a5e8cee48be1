//! What one connection needs to know to be made: a snapshot of the options (CONN-041).

use crate::io::SocketOptions;
use crate::resp::Limits;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// Which version of RESP to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// Ask for RESP3, go on in RESP2 where the server does not know it (CONN-007 to CONN-017).
    #[default]
    Auto,
    /// RESP2; no `HELLO` is sent (CONN-018).
    Resp2,
    /// RESP3 or nothing (CONN-019).
    Resp3,
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// A host name or an IP address (without brackets), and a port.
    Tcp {
        /// Name or address.
        host: Rc<str>,
        /// 1 to 65535.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A password. It never shows in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Rc<str>);

impl Secret {
    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Who logs in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// `None` is the server's default user (CONN-037).
    pub username: Option<Rc<str>>,
    /// The password.
    pub password: Secret,
}

/// Everything that one connection is made with; the fields are described at
/// [`ConnectOptions`](crate::client::ConnectOptions).
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct ConnectionConfig {
    pub endpoint: Endpoint,
    pub protocol: Protocol,
    pub credentials: Option<Credentials>,
    pub client_name: Option<Rc<str>>,
    pub database: u32,
    /// Send CLIENT SETINFO (CONN-140).
    pub set_info: bool,
    pub connect_timeout: Duration,
    /// Bounds each wait for a set-up reply (CONN-048).
    pub command_timeout: Option<Duration>,
    pub idle_read_timeout: Option<Duration>,
    pub limits: Limits,
    pub inflight_max: usize,
    pub queued_bytes_max: u64,
    pub write_buffer: usize,
    pub socket: SocketOptions,
}
