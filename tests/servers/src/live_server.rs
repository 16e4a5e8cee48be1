//! One running server: how it is hurt, asked and removed.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::Signal;

use crate::certificates::Certificates;
use crate::launch::{Directory, ServerCommand, end, info_field, local};
use crate::port::Port;
use crate::resp::{CLI_TIMEOUT, Connection};
use crate::{Kind, LiveServerBuilder, child};

/// A server on 127.0.0.1 that belongs to one test. Dropping it kills the process and removes its files.
#[derive(Debug)]
pub struct LiveServer {
    pub(crate) kind: Kind,
    pub(crate) child: Child,
    pub(crate) password: Option<String>,
    pub(crate) unix_socket: bool,
    pub(crate) certificates: Option<Certificates>,
    pub(crate) binary: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) port: Port,
    pub(crate) tls_port: Option<Port>,
    pub(crate) directory: Directory,
}

impl LiveServer {
    /// A server of this kind with nothing special about it.
    ///
    /// # Errors
    ///
    /// As [`LiveServerBuilder::start`].
    ///
    /// # Panics
    ///
    /// When the binary is not there: see [`find`](crate::find).
    #[track_caller]
    pub fn start(kind: Kind) -> io::Result<Self> {
        Self::builder(kind).start()
    }

    /// Describes a server before it starts.
    pub fn builder(kind: Kind) -> LiveServerBuilder {
        LiveServerBuilder { kind, password: None, args: Vec::new(), unix_socket: false, tls: false }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it listens without TLS.
    pub fn addr(&self) -> SocketAddr {
        local(&self.port)
    }

    /// `redis://127.0.0.1:PORT`, with the default user's password when there is one.
    pub fn url(&self) -> String {
        self.url_of("redis", self.addr())
    }

    /// Where it listens with TLS, when it does.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_port.as_ref().map(local)
    }

    /// As [`url`](Self::url), with `rediss` and the TLS port, when it has one.
    pub fn tls_url(&self) -> Option<String> {
        self.tls_addr().map(|addr| self.url_of("rediss", addr))
    }

    /// The PEM file of the authority that signed its certificate, when it has TLS. The certificate is for
    /// `127.0.0.1` and `localhost`.
    pub fn tls_authority_path(&self) -> Option<&Path> {
        let certificates = self.certificates.as_ref()?;
        Some(&certificates.authority)
    }

    /// Its Unix socket, when it has one.
    pub fn unix_path(&self) -> Option<PathBuf> {
        self.unix_socket.then(|| self.directory.unix_path())
    }

    /// The file it prints its log to; a restart begins it anew.
    pub fn log_path(&self) -> PathBuf {
        self.directory.log_path()
    }

    /// Its process id; after a kill, the id it had.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with SIGKILL and waits until it is gone. Killing a dead server does nothing.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// Freezes it (SIGSTOP): its sockets stay, and nothing answers.
    ///
    /// # Errors
    ///
    /// When it is dead.
    pub fn stop_signal(&mut self) -> io::Result<()> {
        child::signal(&mut self.child, Signal::STOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// When it is dead.
    pub fn cont_signal(&mut self) -> io::Result<()> {
        child::signal(&mut self.child, Signal::CONT)
    }

    /// Starts it again with the same options on the same port, after killing it when it still runs. The
    /// data is lost; a cluster node keeps its id, as `nodes.conf` stays.
    ///
    /// # Errors
    ///
    /// As [`LiveServerBuilder::start`], and [`io::ErrorKind::AddrInUse`] when something else took the port
    /// meanwhile. The server is dead then, and may be restarted later.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill()?;
        let command = ServerCommand { binary: &self.binary, args: &self.args, directory: &self.directory };
        self.child = command.run(&self.port, self.password.as_deref())?;
        Ok(())
    }

    /// Runs one command as the default user, on a connection of its own, and returns the reply as text:
    /// elements of an array on lines of their own, nil as `(nil)`, an error with `(error) ` before it.
    ///
    /// # Panics
    ///
    /// When there is no reply; [`try_cli`](Self::try_cli) returns that as an error.
    #[track_caller]
    pub fn cli(&self, arguments: &[&str]) -> String {
        match self.try_cli(arguments) {
            Ok(reply) => reply,
            Err(error) => panic!("{} to {}: {error}", arguments.join(" "), self.kind),
        }
    }

    /// As [`cli`](Self::cli), for a server that may not answer.
    ///
    /// # Errors
    ///
    /// When connecting, writing or reading fails or takes longer than five seconds.
    pub fn try_cli(&self, arguments: &[&str]) -> io::Result<String> {
        let mut connection = self.connect()?;
        let reply = connection.call(arguments)?;
        connection.close()?;
        Ok(reply)
    }

    /// How many clients are connected, without the one that asks.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    #[track_caller]
    pub fn connected_clients(&self) -> usize {
        let clients: usize = info_field(&self.cli(&["INFO", "clients"]), "connected_clients")
            .unwrap_or_else(|error| panic!("{}: {error}", self.kind));
        clients - 1
    }

    /// The lines of `CLIENT LIST`, without that of the connection that asks.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    #[track_caller]
    pub fn client_list(&self) -> Vec<String> {
        let list = || {
            let mut connection = self.connect()?;
            let own = format!("id={} ", connection.call(&["CLIENT", "ID"])?);
            let list = connection.call(&["CLIENT", "LIST"])?;
            connection.close()?;
            let others = list.lines().filter(|line| !line.starts_with(&own));
            Ok(others.map(str::to_owned).collect())
        };
        list().unwrap_or_else(|error: io::Error| panic!("CLIENT LIST of {}: {error}", self.kind))
    }

    fn connect(&self) -> io::Result<Connection> {
        Connection::open(self.addr(), self.password.as_deref(), CLI_TIMEOUT)
    }

    fn url_of(&self, scheme: &str, addr: SocketAddr) -> String {
        match &self.password {
            Some(password) => format!("{scheme}://:{}@{addr}", percent_encode(password)),
            None => format!("{scheme}://{addr}"),
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
