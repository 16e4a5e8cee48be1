//! From a command line to a process that answers, or to an error that says why not.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::child;
use crate::port::Port;
use crate::resp::Connection;

/// How long a server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How often it is asked meanwhile.
const START_POLL: Duration = Duration::from_millis(5);
/// How long one such question waits: when a stranger has the port it may never be answered.
const START_PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// How many of the log's last lines an error shows.
const LOG_TAIL_LINES: usize = 20;

/// A directory of its own below the system's temporary one, removed when dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
}

impl Directory {
    pub(crate) fn create() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("respiral-server-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                // Left over from a killed process that had our id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result.map(|()| Self { path }),
            }
        }
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(crate) fn unix_path(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The last lines of what the server printed.
    fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A command line, ready to run on its port.
pub(crate) struct ServerCommand<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) directory: &'a Directory,
}

impl ServerCommand<'_> {
    /// Starts the process, and returns it once it answers.
    pub(crate) fn run(&self, port: &Port, password: Option<&str>) -> io::Result<Child> {
        let log = File::create(self.directory.log_path())?;
        let mut command = child::command(self.binary);
        command
            .args(self.args)
            .current_dir(&self.directory.path)
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log);
        let mut child = child::spawn(command)?;
        match self.wait_until_ready(&mut child, local(port), password) {
            Ok(()) => Ok(child),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    fn wait_until_ready(
        &self,
        child: &mut Child,
        addr: SocketAddr,
        password: Option<&str>,
    ) -> io::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            // Whoever answers may be a stranger on our port, also while our child still lives: the id tells.
            let answer = server_process_id(addr, password);
            if answer.as_ref().is_ok_and(|&id| id == child.id()) {
                return Ok(());
            }
            if let Some(status) = child.try_wait()? {
                let log = self.directory.log_tail();
                let kind = if log.contains("Address already in use") {
                    io::ErrorKind::AddrInUse
                } else {
                    io::ErrorKind::Other
                };
                return Err(self.error(kind, &format!("exited ({status})"), &log));
            }
            if Instant::now() >= deadline {
                let what = match answer {
                    Ok(id) => format!("is not who answers on {addr}: process {id} does"),
                    Err(error) => format!("did not answer in {START_TIMEOUT:?}: {error}"),
                };
                let log = self.directory.log_tail();
                return Err(self.error(io::ErrorKind::TimedOut, &what, &log));
            }
            thread::sleep(START_POLL);
        }
    }

    fn error(&self, kind: io::ErrorKind, what: &str, log: &str) -> io::Error {
        let binary = self.binary.display();
        let args = self.args.join(" ");
        let message = format!("{binary} {what}\nstarted with: {args}\nits log ends with:\n{log}");
        io::Error::new(kind, message)
    }
}

/// The id of the process that answers `PING` on `addr`.
fn server_process_id(addr: SocketAddr, password: Option<&str>) -> io::Result<u32> {
    let mut connection = Connection::open(addr, password, START_PROBE_TIMEOUT)?;
    let pong = connection.call(&["PING"])?;
    if pong != "PONG" {
        return Err(io::Error::other(format!("PING: {pong}")));
    }
    let info = connection.call(&["INFO", "server"])?;
    connection.close()?;
    info_field(&info, "process_id")
}

/// The number after `name:` in a reply to `INFO`.
pub(crate) fn info_field<T: std::str::FromStr>(info: &str, name: &str) -> io::Result<T> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("INFO without {name}: {info}")))
}

pub(crate) fn local(port: &Port) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port.number()).into()
}

/// Kills and reaps; a stopped process too.
pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
