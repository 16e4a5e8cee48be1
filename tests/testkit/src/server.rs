//! The handle that a test holds.
//!
//! **Invariant.** Every method may be called from any thread, and its effect is complete when it returns. When the handle
//! is dropped, the thread is joined and every socket is closed.

use crate::builder::Builder;
use crate::event_loop::{Looped, Shared};
use crate::faults::{Connections, Faults, Hangup, Owner, Selection, Target};
use crate::listener::{Accept, Listener, Place};
use crate::record::{Recorded, Request};
use crate::request::{Args, BULK_BYTES_MAX};
use crate::rules::{Action, Pattern, Rule, RuleId};
use crate::session::{NoPeers, Session};
use crate::state::{Core, Parts, Stats};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

const LOADING: &str = "LOADING Redis is loading the dataset in memory";
/// The bound of `wait_for`: far beyond what a healthy test needs, on a slow machine too.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A running server. It is stopped when it is dropped.
///
/// See the [crate's documentation](crate) for an overview.
pub struct Server {
    shared: Arc<Shared<Core>>,
    thread: Option<JoinHandle<()>>,
    place: Place,
}

impl Server {
    /// Starts a server with all defaults: a free port of 127.0.0.1, no password, RESP2 and RESP3.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// Starts with options.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn launch(listener: Listener, parts: Parts) -> io::Result<Self> {
        let place = listener.place().clone();
        let shared = Arc::new(Shared::new(|epoll| Core::new(epoll, listener, parts))?);
        let thread = Some(shared.launch()?);
        Ok(Self { shared, thread, place })
    }

    pub(crate) fn with_core<R>(&self, work: impl FnOnce(&mut Core) -> R) -> R {
        self.shared.with_core(work)
    }

    // Where it is.

    /// The address that it listens at. It stays the same over a restart.
    ///
    /// # Panics
    /// When it listens on a Unix socket; see [`Server::path`].
    pub fn addr(&self) -> SocketAddr {
        match &self.place {
            Place::Tcp(addr) => *addr,
            Place::Unix(path) => panic!("the server listens on the Unix socket {}", path.display()),
        }
    }

    /// The path of its Unix socket, if it has one.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Tcp(_) => None,
            Place::Unix(path) => Some(path.clone()),
        }
    }

    /// `redis://127.0.0.1:PORT`, or `unix:///PATH`. A password is not part of it.
    pub fn url(&self) -> String {
        match &self.place {
            Place::Tcp(addr) => format!("redis://{addr}"),
            Place::Unix(path) => format!("unix://{}", path.display()),
        }
    }

    // What it saw.

    /// All numbers at this moment.
    pub fn stats(&self) -> Stats {
        self.shared.peek(|core| core.stats())
    }

    /// Connections accepted since the start. The last one has this number.
    pub fn connections_accepted(&self) -> u64 {
        self.stats().connections_accepted
    }

    /// Bytes read from all connections.
    pub fn bytes_received(&self) -> u64 {
        self.stats().bytes_received
    }

    /// Waits until the numbers satisfy `reached`. False when they do not within 30 seconds.
    ///
    /// It blocks the thread. In an async test the client lives on that thread, and sends nothing meanwhile: there, look
    /// at [`stats`](Self::stats) in a loop that lets other tasks run (`tokio::task::yield_now`, a millisecond's sleep).
    ///
    /// ```
    /// # use respiral_testkit::Server;
    /// # let server = Server::start().unwrap();
    /// let _client = std::net::TcpStream::connect(server.addr()).unwrap();
    /// assert!(server.wait_for(|stats| stats.connections_accepted == 1));
    /// ```
    #[must_use = "false means that it did not happen"]
    pub fn wait_for(&self, reached: impl FnMut(&Stats) -> bool) -> bool {
        self.shared.wait_for(WAIT_LIMIT, reached)
    }

    /// Turns recording on or off. Recording copies every command, so it is off unless asked for.
    pub fn record(&self, on: bool) {
        self.with_core(|core| core.parts.recording = on);
    }

    /// The recorded commands, in the order in which the server met them.
    pub fn commands(&self) -> Vec<Recorded> {
        self.with_core(|core| core.parts.recorded.clone())
    }

    /// Forgets the recorded commands and returns them.
    pub fn take_commands(&self) -> Vec<Recorded> {
        self.with_core(|core| std::mem::take(&mut core.parts.recorded))
    }

    /// Runs one command inside the server, in database 0, past all rules and faults, and returns its RESP2 reply: a look
    /// at the data, or a way to prepare it.
    ///
    /// ```
    /// # use respiral_testkit::Server;
    /// # let server = Server::start().unwrap();
    /// assert_eq!(server.execute(["SET", "k", "v"]), b"+OK\r\n");
    /// assert_eq!(server.execute(["GET", "k"]), b"$1\r\nv\r\n");
    /// ```
    ///
    /// # Panics
    /// When `command` is empty.
    pub fn execute<A: AsRef<[u8]>>(&self, command: impl IntoIterator<Item = A>) -> Vec<u8> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for arg in command {
            let start = bytes.len();
            bytes.extend_from_slice(arg.as_ref());
            spans.push(start..bytes.len());
        }
        assert!(!spans.is_empty(), "a command has a name");
        assert!(bytes.len() as u64 <= BULK_BYTES_MAX as u64, "a command this large could not arrive either");
        let mut session = Session::new(0, "inside".to_owned(), "inside".to_owned(), true);
        let mut out = Vec::new();
        self.with_core(|core| {
            core.set_clock();
            core.parts.world.run(Args::new(&bytes, &spans), &mut session, &NoPeers, &mut out);
        });
        out
    }

    /// Lets time pass for keys that expire, without waiting.
    pub fn advance_clock(&self, by: Duration) {
        self.with_core(|core| core.clock_offset += by);
    }

    // What it answers.

    /// Begins a rule for a command: `"GET"`, `"CLIENT SETINFO"`, or `"*"` for every command. Of several rules that match,
    /// the first one written acts.
    ///
    /// ```
    /// # use respiral_testkit::Server;
    /// # let server = Server::start().unwrap();
    /// server.on("GET").argument("k").times(2).reply_error("TRYAGAIN not yet");
    /// server.on("SET").nth(3).withhold();
    /// ```
    pub fn on(&self, command: &str) -> Rule<'_> {
        Rule::new(self, Pattern::new(command))
    }

    /// Lets a closure decide upon each command, with the connection's number. `None` leaves the decision to the rules.
    ///
    /// The closure runs inside the server; it must not call the server's methods (that panics).
    pub fn script(&self, script: impl FnMut(u64, &Request<'_>) -> Option<Action> + Send + 'static) {
        self.with_core(|core| core.parts.rules.set_script(Some(Box::new(script))));
    }

    /// Removes one rule; its withheld replies stay withheld.
    pub fn remove(&self, rule: RuleId) {
        self.with_core(|core| core.parts.rules.remove(rule));
    }

    /// Removes the script and all rules.
    pub fn remove_rules(&self) {
        self.with_core(|core| {
            core.parts.rules.set_script(None);
            core.parts.rules.clear();
        });
    }

    /// How many commands the rule has acted on.
    pub fn acted(&self, rule: RuleId) -> u64 {
        self.with_core(|core| core.parts.rules.acted(rule))
    }

    /// Answers `LOADING` to each of these commands, so many times each.
    pub fn loading(&self, commands: &[&str], times: u64) {
        self.with_core(|core| {
            for command in commands {
                core.parts.rules.add(Pattern::new(command).times(times), Action::error(LOADING));
            }
        });
    }

    /// Answers `NOPERM` to each of these commands, which may name a subcommand: `"CLIENT SETINFO"`.
    pub fn deny(&self, commands: &[&str]) {
        self.with_core(|core| {
            for command in commands {
                let full = command.to_ascii_lowercase().replace(' ', "|");
                let text = format!("NOPERM User default has no permissions to run the '{full}' command");
                core.parts.rules.add(Pattern::new(command), Action::error(text));
            }
        });
    }

    /// Lets all withheld replies go; says how many there were.
    pub fn release(&self) -> usize {
        self.all_connections().release()
    }

    /// Sends bytes that answer no command to one connection; false when it is not open.
    pub fn push(&self, connection: u64, bytes: &[u8]) -> bool {
        self.connection(connection).push(bytes) == 1
    }

    // What goes wrong.

    /// The connection with this number; numbers count accepted connections from 1, as `CLIENT ID` does.
    pub fn connection(&self, number: u64) -> Connections<'_> {
        Connections::new(self, Selection::One(number))
    }

    /// All connections that are open now.
    pub fn open_connections(&self) -> Connections<'_> {
        Connections::new(self, Selection::Open)
    }

    /// All connections that are not accepted yet.
    pub fn new_connections(&self) -> Connections<'_> {
        Connections::new(self, Selection::New)
    }

    /// All connections, now and later.
    pub fn all_connections(&self) -> Connections<'_> {
        Connections::new(self, Selection::All)
    }

    /// What happens to clients that connect from now on.
    pub fn accept(&self, accept: Accept) -> io::Result<()> {
        self.with_core(|core| core.set_accept(accept))
    }

    /// Goes away: connections end with an end of stream, connects are refused. The port stays reserved, data and rules
    /// are kept.
    pub fn stop(&self) -> io::Result<()> {
        self.with_core(Core::close)
    }

    /// Stops, if it runs, and comes back at the same address with its data.
    pub fn restart(&self) -> io::Result<()> {
        self.with_core(|core| core.close().and_then(|()| core.reopen()))
    }

    /// Like [`Server::restart`], but the data is lost, as without persistence.
    pub fn restart_empty(&self) -> io::Result<()> {
        self.with_core(|core| {
            core.close()?;
            core.parts.world.store.flush_all();
            core.reopen()
        })
    }
}

impl Owner for Server {
    fn change_faults(&self, target: Target, change: &dyn Fn(&mut Faults)) {
        self.with_core(|core| core.change_faults(target.selection, change));
    }

    fn hang_up(&self, target: Target, how: Hangup) {
        self.with_core(|core| core.hang_up(target.selection, how));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked in a script, the message is out already, and clients saw their connections close.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}
