//! The connection machine on virtual time, against a script.

use super::*;
use crate::buf::Payload;
use crate::error::{Delivery, code};
use crate::resp::{FromReply, Value};
use std::time::Duration;

#[derive(Default)]
struct Caught {
    replies: Vec<(u32, Value)>,
    dropped: usize,
    pushes: Vec<Value>,
    ended: Vec<(u32, Delivery)>,
    errors: Vec<Error>,
}

impl Sink for Caught {
    fn reply(&mut self, ticket: TicketId, payload: impl FnOnce() -> Payload) {
        self.replies.push((ticket.index, Value::from_payload(payload()).unwrap()));
    }

    fn reply_dropped(&mut self) {
        self.dropped += 1;
    }

    fn push(&mut self, payload: Payload) {
        self.pushes.push(Value::from_payload(payload).unwrap());
    }

    fn ended(&mut self, ticket: TicketId, delivery: Delivery, error: &Error) {
        self.ended.push((ticket.index, delivery));
        self.errors.push(error.clone());
    }
}

/// A connection, the clock, and the peer's side of the wire.
struct Script {
    connection: Connection,
    now: Instant,
    caught: Caught,
    /// What the peer received and has not read.
    wire: Vec<u8>,
    connects: Vec<Address>,
    closes: usize,
    spares: Spares,
    outstanding: Option<usize>,
    /// Hold back completions of sends.
    hold_sent: bool,
    /// What is to be received next goes there.
    block: Option<Block>,
}

fn config() -> ConnectionConfig {
    ConnectionConfig {
        endpoint: Endpoint::Tcp { host: "127.0.0.1".into(), port: 6379 },
        protocol: Protocol::Auto,
        credentials: None,
        client_name: None,
        database: 0,
        set_info: false,
        connect_timeout: Duration::from_secs(10),
        command_timeout: Some(Duration::from_secs(2)),
        idle_read_timeout: None,
        limits: crate::resp::Limits::default(),
        inflight_max: 16,
        queued_bytes_max: 1 << 20,
        write_buffer: 256,
        socket: crate::io::SocketOptions::default(),
    }
}

fn login(username: Option<&str>) -> Option<Credentials> {
    Some(Credentials { username: username.map(Into::into), password: "hunter2".into() })
}

impl Script {
    fn new(config: ConnectionConfig) -> Self {
        let mut stage = Self {
            connection: Connection::new(0, Rc::new(config), crate::buf::Returns::default()),
            now: Instant::now(),
            caught: Caught::default(),
            wire: Vec::new(),
            connects: Vec::new(),
            closes: 0,
            spares: Spares::default(),
            outstanding: None,
            hold_sent: false,
            block: None,
        };
        stage.connection.connect(stage.now);
        stage.pump();
        stage
    }

    /// A connection that is up, in the protocol that its configuration and `hello` lead to.
    fn up(config: ConnectionConfig) -> Self {
        let mut stage = Self::new(config);
        stage.connected();
        stage.wire.clear();
        stage.reply("%1\r\n$5\r\nproto\r\n:3\r\n");
        assert_eq!(stage.event(), Some(Event::Up));
        stage
    }

    fn pump(&mut self) {
        while let Some(op) = self.connection.poll_op(self.now) {
            match op {
                Op::Connect { address, .. } => self.connects.push(address),
                Op::Send { data, .. } => {
                    let bytes: Vec<u8> = data.iter().flat_map(|slice| slice.to_vec()).collect();
                    assert!(self.outstanding.is_none(), "one send at a time");
                    self.outstanding = Some(bytes.len());
                    self.wire.extend_from_slice(&bytes);
                    if !self.hold_sent {
                        self.sent();
                    }
                }
                Op::Close { .. } => self.closes += 1,
                Op::Fill { block, .. } => {
                    assert!(self.block.is_none(), "one block at a time");
                    self.block = Some(block);
                }
                Op::Resolve { .. } => {}
            }
        }
    }

    fn tell(&mut self, completion: Completion) {
        self.connection.handle(self.now, completion, None, &self.spares, &mut self.caught);
        self.pump();
    }

    fn id(&self) -> ConnectionId {
        self.connection.id()
    }

    fn connected(&mut self) {
        self.tell(Completion::Connected { id: self.id() });
    }

    fn sent(&mut self) {
        if let Some(bytes) = self.outstanding.take() {
            let id = self.id();
            self.connection.handle(
                self.now,
                Completion::Sent { id, bytes },
                None,
                &self.spares,
                &mut self.caught,
            );
        }
    }

    fn reply(&mut self, bytes: impl AsRef<[u8]>) {
        self.tell(Completion::Received { id: self.id(), segment: Segment::copy_of(bytes.as_ref()) });
    }

    fn eof(&mut self) {
        self.tell(Completion::Failed { id: self.id(), failure: ConnectionFailure::ClosedByPeer });
    }

    fn closed(&mut self) {
        self.tell(Completion::Closed { id: self.id() });
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.connection.handle_timeout(self.now);
        self.pump();
    }

    fn event(&mut self) -> Option<Event> {
        self.connection.poll_event()
    }

    /// The error of a set-up that failed, after its socket is closed.
    fn failure(&mut self) -> Error {
        assert_eq!(self.closes, 1, "the socket is closed once");
        self.closed();
        match self.event() {
            Some(Event::Failed(error)) => error,
            other => panic!("expected a failed attempt, got {other:?}"),
        }
    }

    fn submit(&mut self, index: u32, command: &str) -> u64 {
        let bytes = frame(command);
        let number = self.connection.submit(TicketId { index, generation: 0 }, |log| log.append(&bytes));
        self.pump();
        number
    }

    fn take_wire(&mut self) -> String {
        let words = String::from_utf8(std::mem::take(&mut self.wire)).unwrap();
        let mut lines = words.split("\r\n");
        let mut commands = Vec::new();
        while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')) {
            let words: Vec<&str> = (0..count.parse().unwrap())
                .map(|_| {
                    lines.next();
                    lines.next().unwrap()
                })
                .collect();
            commands.push(words.join(" "));
        }
        commands.join("; ")
    }
}

fn frame(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        out += &format!("${}\r\n{word}\r\n", word.len());
    }
    out.into_bytes()
}

const HELLO_OK: &str = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n";

// CONN-007, CONN-012, CONN-013
#[test]
fn hello_is_alone_until_it_is_answered() {
    let mut stage = Script::new(ConnectionConfig { client_name: Some("n".into()), database: 2, ..config() });
    assert_eq!(stage.wire, b"");
    stage.connected();
    assert_eq!(stage.take_wire(), "HELLO 3");
    stage.reply(HELLO_OK);
    assert_eq!(stage.take_wire(), "CLIENT SETNAME n; SELECT 2");
    assert_eq!(stage.event(), None);
    stage.reply("+OK\r\n");
    assert!(!stage.connection.is_ready());
    stage.reply("+OK\r\n");
    assert_eq!(stage.event(), Some(Event::Up));
    stage.submit(1, "GET k");
    assert_eq!(stage.take_wire(), "GET k");
}

// CONN-008, CONN-037
#[test]
fn hello_carries_the_credentials() {
    for (user, line) in [(Some("app"), "HELLO 3 AUTH app hunter2"), (None, "HELLO 3 AUTH default hunter2")] {
        let mut stage = Script::new(ConnectionConfig { credentials: login(user), ..config() });
        stage.connected();
        assert_eq!(stage.take_wire(), line);
    }
}

// CONN-009, CONN-010, CONN-037
#[test]
fn resp2_where_hello_is_not_known() {
    for refusal in [
        "-ERR unknown command 'HELLO'\r\n",
        "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
        "-NOPROTO unsupported protocol version\r\n",
    ] {
        let all = ConnectionConfig {
            credentials: login(None),
            client_name: Some("n".into()),
            database: 1,
            ..config()
        };
        let mut stage = Script::new(all);
        stage.connected();
        stage.take_wire();
        stage.reply(refusal);
        assert_eq!(stage.take_wire(), "AUTH hunter2; CLIENT SETNAME n; SELECT 1");
        stage.reply("+OK\r\n+OK\r\n+OK\r\n");
        assert_eq!(stage.event(), Some(Event::Up));
        assert_eq!(stage.connects.len(), 1);
        // A push on a connection that negotiated RESP2 is a fault (F-01).
        stage.reply(">1\r\n+x\r\n");
        assert_eq!(stage.closes, 1);
    }
}

// CONN-011, CONN-025
#[test]
fn other_refusals_of_hello_end_the_set_up() {
    for refusal in [
        "-WRONGPASS invalid username-password pair\r\n",
        "-NOAUTH HELLO must be called with the client already authenticated\r\n",
        "-NOPERM this user has no permissions\r\n",
        "-ERR invalid password\r\n",
    ] {
        let mut stage = Script::new(config());
        stage.connected();
        stage.take_wire();
        stage.reply(refusal);
        assert!(matches!(stage.failure(), Error::Auth(_)), "{refusal}");
        assert_eq!(stage.wire, b"");
    }
    let mut stage = Script::new(config());
    stage.connected();
    stage.reply("garbage\r\n");
    assert!(matches!(stage.failure(), Error::Protocol(_)));
    let mut stage = Script::new(config());
    stage.connected();
    stage.eof();
    let error = stage.failure();
    assert!(
        matches!(&error, Error::Connection(e) if e.failure == ConnectionFailure::ClosedByPeer),
        "{error:?}"
    );
}

// CONN-048, F-09: silence ends set-up after the command timeout, and a late reply reaches nobody.
#[test]
fn a_silent_server() {
    let mut stage = Script::new(config());
    stage.connected();
    stage.wait(Duration::from_millis(1999));
    assert_eq!(stage.closes, 0);
    stage.wait(Duration::from_millis(1));
    stage.reply(HELLO_OK);
    match stage.failure() {
        Error::Timeout(error) => {
            assert_eq!((error.command.as_deref(), error.stage), (Some("HELLO"), Stage::AwaitingReply));
            assert_eq!(error.budget, Duration::from_secs(2));
        }
        other => panic!("{other:?}"),
    }
}

// CONN-016, CONN-017, CONN-132
#[test]
fn a_generic_refusal_keeps_the_text_and_gives_a_hint() {
    let mut stage = Script::new(config());
    stage.connected();
    stage.reply("-ERR command not allowed\r\n");
    let error = stage.failure();
    assert!(error.to_string().contains("RESP2"), "{error}");
    let source = std::error::Error::source(&error).expect("the server's error");
    assert!(source.to_string().contains("ERR command not allowed"));
    let mut stage = Script::new(config());
    stage.connected();
    stage.reply("-ERR invalid password\r\n");
    let error = stage.failure();
    assert!(!error.to_string().contains("RESP2"));
    assert!(std::error::Error::source(&error).expect("kept").to_string().contains("ERR invalid password"));
}

// CONN-018
#[test]
fn resp2_sends_no_hello() {
    let all = ConnectionConfig {
        protocol: Protocol::Resp2,
        credentials: login(Some("app")),
        client_name: Some("n".into()),
        database: 3,
        ..config()
    };
    let mut stage = Script::new(all);
    stage.connected();
    assert_eq!(stage.take_wire(), "AUTH app hunter2; CLIENT SETNAME n; SELECT 3");
    stage.reply("+OK\r\n+OK\r\n+OK\r\n");
    assert_eq!(stage.event(), Some(Event::Up));
    let mut bare = Script::new(ConnectionConfig { protocol: Protocol::Resp2, ..config() });
    bare.connected();
    assert_eq!(bare.event(), Some(Event::Up));
    assert_eq!(bare.wire, b"");
}

// CONN-019
#[test]
fn resp3_or_nothing() {
    let mut stage =
        Script::new(ConnectionConfig { protocol: Protocol::Resp3, credentials: login(None), ..config() });
    stage.connected();
    stage.take_wire();
    stage.reply("-ERR unknown command 'HELLO'\r\n");
    assert_eq!(stage.wire, b"");
    assert!(matches!(stage.failure(), Error::Config(_)));
}

// CONN-014: each socket negotiates anew.
#[test]
fn each_socket_says_hello() {
    let mut stage = Script::new(config());
    for _ in 0..3 {
        stage.connected();
        assert_eq!(stage.take_wire(), "HELLO 3");
        stage.reply("-ERR unknown command 'HELLO'\r\n");
        assert_eq!(stage.event(), Some(Event::Up));
        stage.now += Duration::from_secs(1);
        stage.eof();
        stage.closed();
        assert!(matches!(stage.event(), Some(Event::Lost(_))));
        stage.connection.connect(stage.now);
        stage.pump();
    }
}

// CONN-140, F-21: optional steps may be refused.
#[test]
fn client_info_is_told_and_may_be_refused() {
    let mut stage =
        Script::new(ConnectionConfig { set_info: true, client_name: Some("n".into()), ..config() });
    stage.connected();
    stage.take_wire();
    stage.reply(HELLO_OK);
    let version = env!("CARGO_PKG_VERSION");
    let sent =
        format!("CLIENT SETNAME n; CLIENT SETINFO LIB-NAME respiral; CLIENT SETINFO LIB-VER {version}");
    assert_eq!(stage.take_wire(), sent);
    stage.reply("-NOPERM no\r\n-NOPERM no\r\n-ERR unknown subcommand 'SETINFO'\r\n");
    assert_eq!(stage.event(), Some(Event::Up));
}

// CONN-035
#[test]
fn a_database_that_does_not_exist_ends_the_set_up() {
    let mut stage = Script::new(ConnectionConfig { database: 99, ..config() });
    stage.connected();
    stage.reply(HELLO_OK);
    stage.reply("-ERR DB index is out of range\r\n");
    let error = stage.failure();
    assert!(matches!(&error, Error::Server(e) if e.command() == Some("SELECT")), "{error:?}");
}

// F-23: set-up waits for a server that loads, and is not given out before SELECT succeeded.
#[test]
fn a_loading_server_is_asked_again() {
    let mut stage = Script::new(ConnectionConfig { database: 3, ..config() });
    stage.connected();
    stage.take_wire();
    stage.reply(HELLO_OK);
    assert_eq!(stage.take_wire(), "SELECT 3");
    for delay in [50, 100, 200, 400, 800, 1000, 1000] {
        stage.reply("-LOADING Redis is loading the dataset in memory\r\n");
        assert_eq!(stage.event(), None);
        stage.wait(Duration::from_millis(delay - 1));
        assert_eq!(stage.wire, b"");
        stage.wait(Duration::from_millis(1));
        assert_eq!(stage.take_wire(), "SELECT 3");
    }
    stage.reply("+OK\r\n");
    assert_eq!(stage.event(), Some(Event::Up));
}

// F-23: inside the connect timeout.
#[test]
fn a_server_that_loads_for_ever() {
    let mut stage = Script::new(ConnectionConfig { database: 3, ..config() });
    stage.connected();
    stage.reply(HELLO_OK);
    let began = stage.now;
    while stage.closes == 0 {
        stage.reply("-LOADING Redis is loading the dataset in memory\r\n");
        let next = stage.connection.next_deadline().expect("something is due");
        stage.wait(next.saturating_duration_since(stage.now));
        assert!(stage.now - began <= Duration::from_secs(10));
    }
    let error = stage.failure();
    assert!(matches!(&error, Error::Server(e) if e.code() == code::LOADING), "{error:?}");
    assert!(error.is_transient());
}

// CONN-030, CONN-043 (the error's form)
#[test]
fn a_black_hole() {
    let mut stage = Script::new(config());
    assert_eq!(stage.connection.next_deadline(), Some(stage.now + Duration::from_secs(10)));
    stage.wait(Duration::from_secs(10));
    match stage.failure() {
        Error::Timeout(error) => {
            assert_eq!((error.command.as_deref(), error.stage), (Some("CONNECT"), Stage::Connecting));
            assert_eq!(error.delivery, Delivery::NotExecuted);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_address_is_tried() {
    let mut stage = Script::new(ConnectionConfig {
        endpoint: Endpoint::Tcp { host: "cache".into(), port: 1 },
        ..config()
    });
    let addresses: Vec<SocketAddr> = vec!["[::1]:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap()];
    stage.tell(Completion::Resolved { id: stage.id(), addresses: addresses.clone() });
    stage.tell(Completion::Failed { id: stage.id(), failure: ConnectionFailure::from_errno(111) });
    stage.closed();
    assert_eq!(stage.connects, addresses.iter().map(|address| Address::Tcp(*address)).collect::<Vec<_>>());
    stage.tell(Completion::Failed { id: stage.id(), failure: ConnectionFailure::from_errno(111) });
    assert_eq!(stage.event(), None);
    stage.closed();
    assert!(matches!(stage.event(), Some(Event::Failed(Error::Connection(_)))));
}

// An address that says nothing leaves the others their share of the time, in connecting and in set-up.
#[test]
fn a_silent_address_does_not_use_up_the_time() {
    let endpoint = Endpoint::Tcp { host: "cache".into(), port: 1 };
    let mut stage = Script::new(ConnectionConfig { endpoint, ..config() });
    let addresses: Vec<SocketAddr> =
        ["[::1]:1", "127.0.0.1:1", "127.0.0.2:1"].map(|a| a.parse().unwrap()).into();
    stage.tell(Completion::Resolved { id: stage.id(), addresses });
    stage.wait(Duration::from_secs(10) / 3);
    assert_eq!(stage.closes, 1);
    stage.closed();
    assert_eq!((stage.connects.len(), stage.event()), (2, None));
    // The second connects, and is silent in set-up.
    stage.connected();
    stage.wait(Duration::from_secs(2));
    stage.closed();
    assert_eq!((stage.connects.len(), stage.event()), (3, None));
    stage.connected();
    stage.reply(HELLO_OK);
    assert_eq!(stage.event(), Some(Event::Up));
}

// A peer that completes set-up and hangs up, unused: no storm.
#[test]
fn the_second_connection_lost_at_once_and_unused_is_a_failed_attempt() {
    let mut stage = Script::up(config());
    stage.eof();
    stage.closed();
    // RECON-011: the first time there is a replacement at once.
    assert!(matches!(stage.event(), Some(Event::Lost(_))));
    stage.connection.connect(stage.now);
    stage.pump();
    stage.connected();
    stage.reply(HELLO_OK);
    assert_eq!(stage.event(), Some(Event::Up));
    stage.eof();
    stage.closed();
    assert!(matches!(stage.event(), Some(Event::Failed(Error::Connection(_)))));
    let mut used = Script::up(config());
    used.submit(1, "GET k");
    used.eof();
    used.closed();
    assert!(matches!(used.event(), Some(Event::Lost(_))));
}

// No timeout is too long for the clock.
#[test]
fn endless_timeouts() {
    let max = Duration::MAX;
    let endless = ConnectionConfig {
        connect_timeout: max,
        command_timeout: Some(max),
        idle_read_timeout: Some(max),
        ..config()
    };
    let mut stage = Script::up(endless);
    stage.submit(1, "GET k");
    assert_eq!(stage.connection.next_deadline(), None);
    stage.wait(Duration::from_secs(1));
    assert!(stage.connection.is_ready());
}

#[test]
fn a_name_without_an_address() {
    let mut stage = Script::new(ConnectionConfig {
        endpoint: Endpoint::Tcp { host: "nowhere".into(), port: 1 },
        ..config()
    });
    stage.tell(Completion::Failed { id: stage.id(), failure: ConnectionFailure::Resolve("no".into()) });
    assert!(matches!(stage.event(), Some(Event::Failed(Error::Connection(_)))));
    assert_eq!(stage.closes, 0);
    assert!(stage.connection.is_down());
}

// F-01: cut at every byte; a push is no reply, wherever it comes.
#[test]
fn a_push_between_two_replies() {
    let stream = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nz\r\n$1\r\n1\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\n2\r\n>1\r\n+odd\r\n";
    for cut in 0..=stream.len() {
        let mut stage = Script::up(config());
        stage.submit(1, "GET a");
        stage.submit(2, "GET b");
        stage.reply(&stream[..cut]);
        stage.reply(&stream[cut..]);
        let texts: Vec<_> = stage.caught.replies.iter().map(|(i, v)| (*i, v.as_str().unwrap())).collect();
        assert_eq!(texts, [(1, "1"), (2, "2")], "cut at {cut}");
        assert_eq!(stage.caught.pushes.len(), 3);
        assert!(stage.connection.is_ready());
    }
}

// F-03 (the connection's part): the call ends with an error that names the limit; the socket is closed.
#[test]
fn a_nest_of_arrays_closes_the_connection() {
    let mut stage = Script::up(config());
    stage.submit(1, "GET k");
    stage.reply("*1\r\n".repeat(100_000));
    assert_eq!(stage.closes, 1);
    stage.closed();
    assert_eq!(stage.caught.ended, [(1, Delivery::MaybeExecuted)]);
    match stage.event() {
        Some(Event::Lost(error)) => assert!(error.to_string().contains("depth"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reply_that_nothing_asked_for_closes_the_connection() {
    let mut stage = Script::up(config());
    stage.reply("-ERR max number of clients reached\r\n");
    assert_eq!(stage.closes, 1);
    stage.closed();
    match stage.event() {
        Some(Event::Lost(error)) => assert!(error.to_string().contains("max number of clients"), "{error}"),
        other => panic!("{other:?}"),
    }
}

// Bytes that are no reply are told of the command whose reply was next, if that one is still there; the others on the
// connection are not to blame.
#[test]
fn a_protocol_error_is_one_commands() {
    for caller_is_gone in [false, true] {
        let mut stage = Script::up(config());
        stage.submit(1, "GET k");
        let gone = stage.submit(2, "GET l");
        stage.submit(3, "GET m");
        if caller_is_gone {
            stage.connection.cancel(gone);
        }
        stage.reply("+OK\r\n?huh");
        stage.closed();
        let others = |error: &Error| matches!(error, Error::Connection(e) if matches!(e.failure, ConnectionFailure::Protocol(_)));
        match &stage.caught.errors[..] {
            [Error::Protocol(_), behind] if !caller_is_gone => assert!(others(behind)),
            [behind] if caller_is_gone => assert!(others(behind)),
            errors => panic!("{errors:?}"),
        }
    }
}

// CONN-032
#[test]
fn a_connection_that_owes_and_is_silent_is_closed() {
    let timeout = Duration::from_millis(100);
    let mut stage = Script::up(ConnectionConfig { idle_read_timeout: Some(timeout), ..config() });
    stage.wait(Duration::from_secs(60));
    assert_eq!(stage.closes, 0, "owing nothing, it may be idle");
    stage.submit(1, "GET k");
    stage.wait(timeout - Duration::from_millis(1));
    assert_eq!(stage.closes, 0);
    stage.wait(Duration::from_millis(1));
    assert_eq!(stage.closes, 1);
    stage.closed();
    assert_eq!(stage.caught.ended, [(1, Delivery::MaybeExecuted)]);
}

// A long string is received into a block; a connection that dies meanwhile takes it along, and the next begins anew.
#[test]
fn a_block_goes_with_its_connection() {
    let mut stage = Script::up(config());
    stage.submit(1, "GET k");
    stage.submit(2, "GET l");
    let text = "x".repeat(200_000);
    stage.reply(format!("$200000\r\n{}", &text[..1000]));
    let block = stage.block.take().unwrap();
    assert_eq!(block.missing(), 199_002);
    let first = stage.id();
    stage.eof();
    stage.closed();
    assert_eq!(stage.caught.ended, [(1, Delivery::MaybeExecuted), (2, Delivery::MaybeExecuted)]);

    // What the engine had of it comes too late.
    stage.connection.connect(stage.now);
    stage.pump();
    assert_ne!(stage.id(), first);
    stage.connection.handle(
        stage.now,
        Completion::Filled { id: first, block },
        None,
        &stage.spares,
        &mut stage.caught,
    );
    stage.connected();
    stage.reply(HELLO_OK);
    stage.submit(3, "GET m");
    stage.reply(format!("$200000\r\n{}", &text[..1000]));
    let mut block = stage.block.take().unwrap();
    assert_eq!(block.copy(format!("{}\r\n+next", &text[1000..]).as_bytes()), 199_002);
    stage.tell(Completion::Filled { id: stage.id(), block });
    assert!(stage.block.is_none());
    assert_eq!(stage.caught.replies, [(3, Value::Bulk(text.into()))]);
}

// H26: the fate of commands is told only when the socket is closed and the kernel's count is known.
#[test]
fn fates_wait_for_the_close() {
    let mut stage = Script::up(config());
    stage.hold_sent = true;
    stage.submit(1, "GET k");
    stage.submit(2, "GET l");
    stage.eof();
    assert_eq!(stage.caught.ended, []);
    stage.tell(Completion::Sent { id: stage.id(), bytes: 5 });
    assert_eq!(stage.caught.ended, []);
    stage.closed();
    assert_eq!(stage.caught.ended, [(1, Delivery::NotExecuted)]);
    assert_eq!(stage.connection.in_flight(), 1, "the second moves to the next socket");
}

// SYS-010: whatever the server says, the password does not come back.
#[test]
fn no_error_of_set_up_holds_the_password() {
    for refusal in [
        "-ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `default` `hunter2`\r\n",
        "-WRONGPASS bad password hunter2\r\n",
        "-ERR hunter2\r\n",
    ] {
        let protocol = Protocol::Resp3;
        let mut stage = Script::new(ConnectionConfig { credentials: login(None), protocol, ..config() });
        stage.connected();
        stage.reply(refusal);
        let error = stage.failure();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
    }
}

/// Keeps the level and the text of every record.
#[derive(Clone, Default)]
struct Records(std::sync::Arc<std::sync::Mutex<Vec<(tracing::Level, String)>>>);

impl tracing::Subscriber for Records {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

// CONN-015, SYS-010
#[test]
fn negotiation_is_logged_once_per_connection_and_without_secrets() {
    let records = Records::default();
    // While there is one subscriber only, tracing asks the thread that meets a record first whether anybody wants it; other
    // tests meet these too, without one, and the answer would stand. A second subscriber makes it ask them all.
    let _second = tracing::Dispatch::new(Records::default());
    tracing::subscriber::with_default(records.clone(), || {
        for reply in [HELLO_OK, "-ERR unknown command 'HELLO'\r\n"] {
            for _ in 0..2 {
                let mut stage =
                    Script::new(ConnectionConfig { credentials: login(Some("anna")), ..config() });
                stage.connected();
                stage.reply(reply);
                stage.reply("+OK\r\n");
            }
        }
    });
    let records = records.0.lock().unwrap();
    let at = |level| records.iter().filter(|(l, text)| *l == level && text.contains("RESP3")).count();
    assert_eq!((at(tracing::Level::DEBUG), at(tracing::Level::INFO)), (2, 2), "{records:?}");
    assert!(
        records.iter().all(|(_, text)| !text.contains("hunter2") && !text.contains("anna")),
        "{records:?}"
    );
}

// A Unix listener with a full backlog refuses at once: the attempt goes on, as TCP's would, within `connect_timeout`.
#[test]
fn a_full_backlog_is_tried_again() {
    let path = std::path::PathBuf::from("/run/server.sock");
    let mut config = config();
    config.endpoint = Endpoint::Unix(path);
    config.connect_timeout = Duration::from_millis(25);
    let mut stage = Script::new(config);
    let refuse = |stage: &mut Script, errno| {
        let id = stage.id();
        stage.tell(Completion::Failed { id, failure: ConnectionFailure::from_errno(errno) });
        stage.tell(Completion::Closed { id });
    };
    for tries in 1..=3 {
        assert_eq!(stage.connects.len(), tries);
        refuse(&mut stage, 11);
        assert_eq!(stage.event(), None);
        if tries < 3 {
            stage.now += PAUSE;
            assert_eq!(stage.connection.next_deadline(), Some(stage.now));
            stage.connection.handle_timeout(stage.now);
            stage.pump();
        }
    }
    // The time is up during a pause: there is no socket to close.
    stage.now += Duration::from_millis(5);
    stage.connection.handle_timeout(stage.now);
    stage.pump();
    assert!(matches!(stage.event(), Some(Event::Failed(Error::Timeout(_)))));
    assert_eq!((stage.connects.len(), stage.closes), (3, 3));
    // Any other refusal is final.
    stage.connection.connect(stage.now);
    stage.pump();
    refuse(&mut stage, 111);
    assert!(matches!(stage.event(), Some(Event::Failed(Error::Connection(_)))));
}

// Found by fuzzing: the socket was closed twice, and the error was that of the bytes that followed.
#[test]
fn what_follows_a_refusal_of_set_up_is_not_looked_at() {
    for after in ["garbage\r\n", "+OK\r\n", ">1\r\n+x\r\n"] {
        let mut stage = Script::new(config());
        stage.connected();
        stage.reply(format!("-WRONGPASS invalid username-password pair\r\n{after}"));
        assert!(matches!(stage.failure(), Error::Auth(_)), "{after}");
        assert!(stage.caught.pushes.is_empty());
    }
}

proptest::proptest! {
    #[test]
    fn any_operations_are_those_of_the_model(choices in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..1200)) {
        fuzzing::operations(&choices, Instant::now());
    }
}

#[test]
fn what_fuzzing_has_kept() {
    crate::resp::fuzzing::replay("connection", |choices| fuzzing::operations(choices, Instant::now()));
}
