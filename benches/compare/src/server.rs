//! The server that all sides talk to, on the other core.

use crate::workload::Work;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    child: Option<Child>,
    pub url: String,
    /// What it is, with its version.
    pub name: String,
}

impl Server {
    /// `what` is `test-kit`, a URL, or the path of a server's binary.
    pub fn start(what: &str, core: usize) -> Result<Self, String> {
        let mut server = if what == "test-kit" {
            Self::test_kit(core)?
        } else if what.contains("://") {
            Self { child: None, url: what.to_owned(), name: what.to_owned() }
        } else {
            Self::binary(what, core)?
        };
        let info = server.info()?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if what != "test-kit" {
            let version = field("valkey_version:").or(field("redis_version:")).unwrap_or("unknown");
            server.name = format!("{} {version} ({what})", field("server_name:").unwrap_or("redis"));
        }
        Ok(server)
    }

    fn test_kit(core: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["serve", "--core", &core.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the test kit's server: {error}"))?;
        let mut url = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut url).map_err(|error| error.to_string())?;
        let name = "respiral-testkit (in-memory, one thread, its own process)".to_owned();
        Ok(Self { child: Some(child), url: url.trim().to_owned(), name })
    }

    fn binary(path: &str, core: usize) -> Result<Self, String> {
        let probe = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = probe.map_err(|error| error.to_string())?.port();
        let mut command = Command::new(path);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // A child inherits where its parent may run.
        let before = sched_getaffinity(SELF).map_err(|error| error.to_string())?;
        pin(core);
        let child = command.spawn().map_err(|error| format!("{path}: {error}"));
        let _ = sched_setaffinity(SELF, &before);
        let server =
            Self { child: Some(child?), url: format!("redis://127.0.0.1:{port}"), name: String::new() };
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.connect().is_err() {
            if Instant::now() > deadline {
                return Err(format!("{path} does not answer on port {port}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn connect(&self) -> Result<TcpStream, String> {
        connect(&self.url)
    }

    fn info(&self) -> Result<String, String> {
        let mut stream = self.connect()?;
        let failed = |error: std::io::Error| format!("{}: {error}", self.url);
        stream.write_all(b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n").map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        reader.read_line(&mut head).map_err(failed)?;
        let length =
            head.trim().trim_start_matches('$').parse().map_err(|_| format!("INFO gave {}", head.trim()))?;
        let mut text = vec![0; length];
        reader.read_exact(&mut text).map_err(failed)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Server {
    /// None when it is not ours.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // The test kit's ends with its input; a real one is told.
        if child.stdin.take().is_none() {
            let _ = child.kill();
        }
        let _ = child.wait();
    }
}

fn connect(url: &str) -> Result<TcpStream, String> {
    let address =
        url.strip_prefix("redis://").ok_or(format!("{url}: the floor speaks redis://HOST:PORT only"))?;
    let stream =
        TcpStream::connect(address.trim_end_matches('/')).map_err(|error| format!("{url}: {error}"))?;
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(30))))
        .expect("a socket");
    Ok(stream)
}

/// Puts the keys of a workload into the server.
pub fn load(url: &str, work: &Work) -> Result<(), String> {
    let mut stream = connect(url)?;
    let failed = |error: std::io::Error| format!("{url}: {error}");
    let mut buffer = vec![0; 4096];
    for frame in work.set_up() {
        stream.write_all(&frame).map_err(failed)?;
        let count = stream.read(&mut buffer).map_err(failed)?;
        if count == 0 || buffer[0] == b'-' {
            return Err(format!("{url} answered {}", String::from_utf8_lossy(&buffer[..count])));
        }
    }
    Ok(())
}

/// Serves on one core until standard input ends.
pub fn serve(core: usize) {
    pin(core);
    raise_descriptor_limit();
    let server = respiral_testkit::Server::start().expect("a free port");
    println!("{}", server.url());
    let _ = std::io::stdin().read(&mut [0]);
}

pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    if let Err(error) = set.set(core).and_then(|()| sched_setaffinity(SELF, &set)) {
        eprintln!("compare: not pinned to core {core}: {error}");
    }
}

/// This thread, to the calls above.
const SELF: Pid = Pid::from_raw(0);

/// Idle connections need more descriptors than the usual 1024.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::RLIMIT_NOFILE);
    let _ = limit.and_then(|(_, highest)| setrlimit(Resource::RLIMIT_NOFILE, highest, highest));
}
