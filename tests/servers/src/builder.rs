//! What a server is to be like, and its command line.

use std::io;
use std::path::Path;

use crate::certificates::Certificates;
use crate::launch::{Directory, ServerCommand};
use crate::port::Port;
use crate::{Kind, LiveServer, find};

/// How many ports are tried when a stranger takes them between our look and the server's bind.
const START_ATTEMPTS_MAX: u32 = 5;

/// What a server is to be like; made by [`LiveServer::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct LiveServerBuilder {
    pub(crate) kind: Kind,
    pub(crate) password: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) unix_socket: bool,
    pub(crate) tls: bool,
}

impl LiveServerBuilder {
    /// The default user's password.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.args(["--requirepass", password])
    }

    /// One more user, switched on, with `rules` such as `~* +@all`.
    ///
    /// The default user is the one this crate asks as: it needs `PING`, `INFO` and `CLIENT`.
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        let password = format!(">{password}");
        self.args(["--user", name, "on", &password]).args(rules.split_whitespace())
    }

    /// An option with one value, as on the server's command line: `.arg("--maxmemory", "100mb")`.
    pub fn arg(self, option: &str, value: &str) -> Self {
        self.args([option, value])
    }

    /// An option with any number of values: `.args(["--replicaof", "127.0.0.1", "7000"])`.
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(str::to_owned));
        self
    }

    /// How many databases `SELECT` can choose from.
    pub fn databases(self, count: u32) -> Self {
        self.arg("--databases", &count.to_string())
    }

    /// Whether it also listens on a Unix socket: [`LiveServer::unix_path`].
    pub fn unix_socket(mut self, on: bool) -> Self {
        self.unix_socket = on;
        self
    }

    /// Whether it also listens with TLS, on a second port: [`LiveServer::tls_addr`]. Client certificates
    /// are not asked for; `.arg("--tls-auth-clients", "yes")` changes that.
    pub fn tls(mut self, on: bool) -> Self {
        self.tls = on;
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it exits or does not answer in time: the message ends with the last lines of its log. When TLS
    /// is asked of a kind that was built without: [`io::ErrorKind::Unsupported`].
    ///
    /// # Panics
    ///
    /// When the binary is not there: see [`find`].
    #[track_caller]
    pub fn start(self) -> io::Result<LiveServer> {
        let binary = find(self.kind);
        if self.tls && !self.kind.has_tls() {
            let message = format!("{} was built without TLS", self.kind);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let directory = Directory::create()?;
        let tls = self.tls.then(|| Certificates::write(&directory.path)).transpose()?;
        let mut attempt = 1;
        loop {
            let port = Port::reserve()?;
            let tls_port = self.tls.then(Port::reserve).transpose()?;
            let mut args = base_args(&port, &directory.path)?;
            if self.unix_socket {
                args.extend(["--unixsocket".into(), text(&directory.unix_path())?]);
            }
            if let (Some(files), Some(port)) = (&tls, &tls_port) {
                args.extend(tls_args(files, port)?);
            }
            args.extend_from_slice(&self.args);
            let command = ServerCommand { binary: &binary, args: &args, directory: &directory };
            match command.run(&port, self.password.as_deref()) {
                Ok(child) => {
                    return Ok(LiveServer {
                        kind: self.kind,
                        child,
                        password: self.password,
                        unix_socket: self.unix_socket,
                        certificates: tls,
                        binary,
                        args,
                        port,
                        tls_port,
                        directory,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < START_ATTEMPTS_MAX => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What every server is started with: nothing on disk, nothing beyond this machine.
fn base_args(port: &Port, directory: &Path) -> io::Result<Vec<String>> {
    let port = port.number().to_string();
    let directory = text(directory)?;
    let args = [
        ["--port", &port],
        ["--bind", "127.0.0.1"],
        ["--dir", &directory],
        ["--save", ""],
        ["--appendonly", "no"],
        ["--daemonize", "no"],
    ];
    Ok(args.into_iter().flatten().map(str::to_owned).collect())
}

fn tls_args(files: &Certificates, port: &Port) -> io::Result<Vec<String>> {
    let mut args = vec!["--tls-port".into(), port.number().to_string()];
    for (option, path) in [
        ("--tls-ca-cert-file", &files.authority),
        ("--tls-cert-file", &files.certificate),
        ("--tls-key-file", &files.key),
    ] {
        args.extend([option.into(), text(path)?]);
    }
    args.extend(["--tls-auth-clients".into(), "no".into()]);
    Ok(args)
}

fn text(path: &Path) -> io::Result<String> {
    let message = || io::Error::other(format!("{} is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(message)
}
