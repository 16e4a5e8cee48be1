//! The whole client against real servers. A server that is not installed fails the test, with the command that brings it.

use crate::cancelling::storm;
use crate::failing::{Tally, load};
use crate::host::{Host, spawn};
use crate::kit::{count_from_env, pause, until};
use respiral::command::refusal;
use respiral::engine::RunningEngine;
use respiral::{Blob, Client, ConnectOptions, Delivery, EngineKind, EngineOptions, Error, Protocol, Value};
use servers::{Kind, LiveServer, LiveServerBuilder};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// A real server, and how to reach it with one engine.
pub(crate) struct Live {
    pub(crate) server: LiveServer,
    engine: EngineKind,
}

impl Live {
    fn options(&self) -> ConnectOptions {
        self.at(&self.server.url())
    }

    pub(crate) fn at(&self, url: &str) -> ConnectOptions {
        ConnectOptions::try_from(url).unwrap().engine(EngineOptions::new().kind(self.engine))
    }

    pub(crate) async fn connect<H: Host>(&self, options: ConnectOptions) -> Client {
        Client::connect_on(H::runtime(), options).await.unwrap()
    }
}

pub(crate) fn inside<H: Host>(builder: LiveServerBuilder, engine: EngineKind, test: impl AsyncFnOnce(Live)) {
    let live = Live { server: builder.start().unwrap(), engine };
    let mut host = H::start();
    H::block_on(&mut host, test(live));
}

pub(crate) fn plain(kind: Kind) -> LiveServerBuilder {
    LiveServer::builder(kind)
}

pub(crate) async fn everyday(client: &Client) {
    client.cmd::<()>("FLUSHDB").await.unwrap();
    // Strings and counters.
    client.set("s", "value").ex(100).await.unwrap();
    assert_eq!(client.get::<String, _>("s").await.unwrap(), "value");
    assert_eq!(client.get::<Option<String>, _>("none").await.unwrap(), None);
    assert!(!client.set("s", "other").nx().await.unwrap());
    assert!(client.set("s", "other").xx().px(50_000).await.unwrap());
    assert_eq!(client.set("s", "third").get::<String>().await.unwrap(), "other");
    assert_eq!(client.incr("n").await.unwrap(), 1);
    assert_eq!(client.cmd::<i64>("INCRBY").arg("n").arg(41).await.unwrap(), 42);
    assert_eq!(client.cmd::<f64>("INCRBYFLOAT").arg("f").arg(1.5).await.unwrap(), 1.5);
    assert_eq!(client.cmd::<usize>("APPEND").arg("s").arg("!").await.unwrap(), 6);
    assert_eq!(client.cmd::<()>("MSET").arg(("a", 1, "b", 2)).await, Ok(()));
    let values: Vec<Option<i64>> = client.cmd("MGET").arg(["a", "b", "none"]).await.unwrap();
    assert_eq!(values, [Some(1), Some(2), None]);
    // Keys.
    assert_eq!(client.cmd::<i64>("DEL").arg(["a", "b", "none"]).await.unwrap(), 2);
    assert!(client.cmd::<bool>("EXPIRE").arg("n").arg(100).await.unwrap());
    assert!((1..=100).contains(&client.cmd::<i64>("TTL").arg("n").await.unwrap()));
    assert!(client.cmd::<bool>("EXISTS").arg("n").await.unwrap());
    assert_eq!(client.cmd::<String>("TYPE").arg("n").await.unwrap(), "string");
    // Hashes.
    let fields = BTreeMap::from([("x".to_owned(), 1), ("y".to_owned(), 2)]);
    assert_eq!(client.cmd::<i64>("HSET").arg("h").arg(&fields).await.unwrap(), 2);
    assert_eq!(client.cmd::<BTreeMap<String, i32>>("HGETALL").arg("h").await.unwrap(), fields);
    assert_eq!(client.cmd::<Option<i64>>("HGET").arg(("h", "z")).await.unwrap(), None);
    // Lists.
    assert_eq!(client.cmd::<i64>("RPUSH").arg("l").arg(["a", "b", "c"]).await.unwrap(), 3);
    assert_eq!(client.cmd::<Vec<String>>("LRANGE").arg(("l", 0, -1)).await.unwrap(), ["a", "b", "c"]);
    assert_eq!(client.cmd::<Option<String>>("LPOP").arg("l").await.unwrap().as_deref(), Some("a"));
    // Sets.
    assert_eq!(client.cmd::<i64>("SADD").arg("t").arg(["p", "q", "p"]).await.unwrap(), 2);
    let members: BTreeSet<String> = client.cmd("SMEMBERS").arg("t").await.unwrap();
    assert_eq!(members, BTreeSet::from(["p".to_owned(), "q".to_owned()]));
    assert!(client.cmd::<bool>("SISMEMBER").arg(("t", "q")).await.unwrap());
    // Sorted sets.
    assert_eq!(client.cmd::<i64>("ZADD").arg(("z", 1.5, "one", 2, "two")).await.unwrap(), 2);
    assert_eq!(client.cmd::<f64>("ZSCORE").arg(("z", "one")).await.unwrap(), 1.5);
    let scores: Vec<(String, f64)> = client.cmd("ZRANGE").arg(("z", 0, -1, "WITHSCORES")).await.unwrap();
    assert_eq!(scores, [("one".to_owned(), 1.5), ("two".to_owned(), 2.0)]);
    // Scripts, transactions of the server, and the server.
    assert_eq!(client.cmd::<i64>("EVAL").arg(("return 7", 0)).await.unwrap(), 7);
    assert_eq!(client.cmd::<String>("PING").arg("hello").await.unwrap(), "hello");
    assert!(client.cmd::<i64>("DBSIZE").await.unwrap() > 5);
    assert!(client.cmd::<String>("INFO").arg("server").await.unwrap().contains("tcp_port"));
    let (cursor, keys): (String, Vec<String>) = client.cmd("SCAN").arg((0, "COUNT", 1000)).await.unwrap();
    assert!(cursor == "0" && keys.len() > 5);
    // Errors, and elements that are errors.
    let error = client.cmd::<()>("LPUSH").arg(("s", 1)).await.unwrap_err();
    assert!(matches!(&error, Error::Server(e) if e.code() == "WRONGTYPE"), "{error:?}");
    assert_eq!((error.delivery(), error.command()), (Delivery::Answered, Some("LPUSH")));
    let error = client.cmd::<()>("NOSUCHCOMMAND").arg("a-secret").await.unwrap_err();
    assert!(matches!(&error, Error::Server(e) if e.code() == "ERR"), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("a-secret"));
}

/// The everyday commands, in both protocols, over TCP.
pub fn everyday_commands<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind), engine, async |live| {
        for protocol in [Protocol::Auto, Protocol::Resp2, Protocol::Resp3] {
            let client = live.connect::<H>(live.options().protocol(protocol).allow_admin(true)).await;
            assert_eq!(client.engine().kind == RunningEngine::Uring, engine == EngineKind::Uring);
            everyday(&client).await;
            client.close().await;
        }
        until::<H>("no client is left", || live.server.connected_clients() == 0).await;
    });
}

/// The same over a Unix socket (CONN-141).
pub fn unix_socket<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind).unix_socket(true), engine, async |live| {
        let url = format!("unix://{}?allowAdmin=true", live.server.unix_path().unwrap().display());
        let client = live.connect::<H>(live.at(&url)).await;
        everyday(&client).await;
        client.close().await;
    });
}

/// CONN-025, CONN-037: the default user's password, a user of one's own with few rights, wrong ones.
pub fn passwords_and_users<H: Host>(kind: Kind, engine: EngineKind) {
    let builder =
        plain(kind).password("p@ss/word").user("app", "app-secret", "~app:* +@all -@dangerous -client");
    inside::<H>(builder, engine, async |live| {
        for protocol in [Protocol::Auto, Protocol::Resp2] {
            let options = live.options().protocol(protocol);
            let client = live.connect::<H>(options.clone().allow_admin(true)).await;
            everyday(&client).await;
            client.close().await;

            // Its optional set-up steps are refused (F-21), and so are other people's keys.
            let app = options.clone().username("app").password("app-secret").client_name("app");
            let client = live.connect::<H>(app.clone()).await;
            client.set("app:k", "v").await.unwrap();
            let error = client.get::<(), _>("other").await.unwrap_err();
            assert!(matches!(&error, Error::Server(e) if e.code() == "NOPERM"), "{error:?}");
            client.close().await;

            for wrong in [app.password("wrong-one"), options.password("wrong-one")] {
                let error = Client::connect_on(H::runtime(), wrong).await.unwrap_err();
                assert!(matches!(&error, Error::Auth(_)), "{error:?}");
                assert!(error.to_string().contains("WRONGPASS"), "{error}");
                assert!(!format!("{error:?}").contains("wrong-one"));
            }
        }
        let nobody = live.at(&format!("redis://{}", live.server.addr()));
        let error = Client::connect_on(H::runtime(), nobody).await.unwrap_err();
        assert!(matches!(&error, Error::Auth(_)), "{error:?}");
    });
}

/// The forms of `REDIS_URL`, and SELECT (CONN-035).
pub fn urls_and_databases<H: Host>(kind: Kind, engine: EngineKind) {
    let builder = plain(kind).password("p@ss").user("app", "s3cret", "~* +@all").unix_socket(true);
    inside::<H>(builder, engine, async |live| {
        let addr = live.server.addr();
        let path = live.server.unix_path().unwrap();
        let path = path.display();
        for url in [
            format!("redis://:p%40ss@{addr}/3"),
            format!("redis://p%40ss@{addr}/3"),
            format!("redis://default:p%40ss@{addr}?db=3"),
            format!("redis://app:s3cret@{addr}/3?clientName=me&protocol=3&connections=2"),
            format!("redis://app:s3cret@localhost:{}/3?protocol=2&commandTimeoutMs=5000", addr.port()),
            format!("unix://app:s3cret@{path}?db=3"),
            format!("unix://:p%40ss@{path}?db=3"),
        ] {
            let client = live.connect::<H>(live.at(&url)).await;
            client.set("where", &url).await.unwrap();
            assert_eq!(client.get::<String, _>("where").await.unwrap(), url);
            client.close().await;
        }
        assert_eq!(live.server.cli(&["GET", "where"]), "(nil)", "it went to database 0");
        let error = Client::connect_on(H::runtime(), live.options().database(4_000)).await.unwrap_err();
        assert_eq!(error.command(), Some("SELECT"), "{error:?}");
    });
}

/// CONN-036, CONN-140: the server's list of clients shows who we are.
pub fn client_list<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind), engine, async |live| {
        let client = live.connect::<H>(live.options().client_name("worker-7").connections(2)).await;
        let list = live.server.client_list();
        assert_eq!(list.len(), 2, "{list:?}");
        for line in &list {
            assert!(line.contains(" name=worker-7 "), "{line}");
            // CLIENT SETINFO came with Redis 7.2.
            if kind != Kind::Redis70 {
                assert!(line.contains(" lib-name=respiral ") && line.contains(" lib-ver="), "{line}");
                assert!(line.contains(" resp=3"), "{line}");
            }
        }
        client.close().await;
    });
}

/// SIGKILL and restart under load: errors tell the truth, the same client goes on, nothing is executed twice.
pub fn killed_under_load<H: Host>(kind: Kind, engine: EngineKind) {
    // What was acknowledged is in the log before its reply is sent, so a killed server forgets none of it.
    let builder = plain(kind).arg("--appendonly", "yes").arg("--appendfsync", "no");
    inside::<H>(builder, engine, async |mut live| {
        let options = live.options().connections(2).command_timeout(Some(Duration::from_secs(5)));
        let client = live.connect::<H>(options).await;
        // A counter per caller: what ran twice cannot hide behind what others may have run.
        let tallies: Vec<Rc<Tally>> = (0..64).map(|_| Rc::default()).collect();
        let sum = |count: fn(&Tally) -> i64| tallies.iter().map(|tally| count(tally)).sum::<i64>();
        let tasks: Vec<_> = tallies
            .iter()
            .enumerate()
            .flat_map(|(caller, tally)| load::<H>(&client, &format!("n:{caller}"), 1, tally))
            .collect();
        for _ in 0..3 {
            let done = sum(|tally| tally.done.get());
            until::<H>("progress", || sum(|tally| tally.done.get()) > done + 500).await;
            live.server.kill().unwrap();
            let failed = sum(|tally| tally.not.get());
            until::<H>("calls fail", || sum(|tally| tally.not.get()) > failed).await;
            live.server.restart().unwrap();
        }
        let done = sum(|tally| tally.done.get());
        until::<H>("progress", || sum(|tally| tally.done.get()) > done + 500).await;
        tallies.iter().for_each(|tally| tally.stop.set(true));
        for task in tasks {
            task.result().await;
        }
        assert!(sum(|tally| tally.maybe.get()) > 0, "no call was on its way when the server was killed");
        for (caller, tally) in tallies.iter().enumerate() {
            tally.check(client.get::<i64, _>(format!("n:{caller}")).await.unwrap());
        }
        client.close().await;
    });
}

/// SIGSTOP: calls time out and may have run; after SIGCONT the same connections go on, and nobody gets a late reply.
pub fn stopped_under_load<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind), engine, async |mut live| {
        let options = live.options().command_timeout(Some(Duration::from_millis(150)));
        let client = live.connect::<H>(options).await;
        client.set("k", "v").await.unwrap();
        let tally = Rc::new(Tally::default());
        let tasks = load::<H>(&client, "n", 32, &tally);
        for _ in 0..2 {
            let done = tally.done.get();
            until::<H>("progress", || tally.done.get() > done + 200).await;
            live.server.stop_signal().unwrap();
            let maybe = tally.maybe.get();
            until::<H>("calls time out", || tally.maybe.get() > maybe).await;
            let error = client.get::<String, _>("k").timeout(Duration::from_millis(20)).await.unwrap_err();
            assert!(matches!(error, Error::Timeout(_)), "{error:?}");
            live.server.cont_signal().unwrap();
        }
        let done = tally.done.get();
        until::<H>("progress", || tally.done.get() > done + 200).await;
        tally.stop.set(true);
        for task in tasks {
            task.result().await;
        }
        assert_eq!(client.get::<String, _>("k").timeout(None).await.unwrap(), "v");
        tally.check(client.get::<i64, _>("n").timeout(None).await.unwrap());
        assert_eq!(live.server.connected_clients(), 1);
        client.close().await;
    });
}

/// CONN-142: every command that the server calls blocking is refused, or refused with the argument that makes it block.
pub fn blocking_commands_are_refused<H: Host>(kind: Kind, engine: EngineKind) {
    fn check(command: &Value, seen: &mut usize) {
        let Value::Array(parts) = command else { panic!("{command:?}") };
        let name = parts[0].as_str().unwrap();
        let flags = match &parts[2] {
            Value::Array(flags) | Value::Set(flags) => flags,
            other => panic!("{other:?}"),
        };
        if flags.iter().any(|flag| flag.as_str() == Some("blocking")) {
            *seen += 1;
            let mut words = name.split('|');
            let (name, rest): (_, Vec<&[u8]>) = (words.next().unwrap(), words.map(str::as_bytes).collect());
            let by_argument = [
                ("xread", vec![&b"BLOCK"[..], b"0", b"STREAMS", b"s", b"$"]),
                ("xreadgroup", vec![&b"GROUP"[..], b"g", b"c", b"BLOCK", b"0", b"STREAMS", b"s", b">"]),
            ];
            let args = by_argument.into_iter().find(|(row, _)| *row == name).map_or(rest, |(_, args)| args);
            assert!(refusal(name, args.into_iter()).is_some(), "{name} is not refused");
        }
        if let Some(Value::Array(subcommands)) = parts.get(9) {
            subcommands.iter().for_each(|command| check(command, seen));
        }
    }
    inside::<H>(plain(kind), engine, async |live| {
        let client = live.connect::<H>(live.options()).await;
        let commands: Vec<Value> = client.cmd("COMMAND").await.unwrap();
        assert!(commands.len() > 200);
        let mut seen = 0;
        commands.iter().for_each(|command| check(command, &mut seen));
        assert!(seen >= 10, "only {seen} blocking commands");
        client.close().await;
    });
}

/// A server without room says so, in the error.
pub fn no_room_for_clients<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind).arg("--maxclients", "2"), engine, async |live| {
        for protocol in [Protocol::Auto, Protocol::Resp2] {
            let options = live.options().protocol(protocol);
            // Those who asked before may not be gone yet.
            let start = std::time::Instant::now();
            let full = loop {
                match Client::connect_on(H::runtime(), options.clone().connections(2)).await {
                    Ok(client) => break client,
                    Err(error) => assert!(start.elapsed() < Duration::from_secs(20), "{error:?}"),
                }
            };
            full.incr("n").await.unwrap();
            let error = match Client::connect_on(H::runtime(), options.clone()).await {
                Err(error) => error,
                // RESP2 without set-up: the first command meets it.
                Ok(client) => {
                    let error = client.incr("n").timeout(Duration::from_secs(5)).await.unwrap_err();
                    client.close().await;
                    error
                }
            };
            assert!(error.to_string().contains("max number of clients"), "{error:?}");
            assert!(!error.to_string().contains("RESP2"), "misleading: {error}");
            full.close().await;
        }
    });
}

/// Values of some MiB, in place and copied, while small ones pass.
pub fn big_values<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind), engine, async |live| {
        let client = live.connect::<H>(live.options().connections(2)).await;
        let tasks: Vec<_> = (0..4_u8)
            .map(|task| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    let value: Vec<u8> = (0..5 << 20).map(|at: u32| (at % 251) as u8 ^ task).collect();
                    for _ in 0..3 {
                        client.set(format!("big:{task}"), &value).await.unwrap();
                        client.incr("n").await.unwrap();
                        let blob: Blob = client.get(format!("big:{task}")).await.unwrap();
                        assert!(blob == value[..]);
                        let copy: Vec<u8> = client.get(format!("big:{task}")).await.unwrap();
                        assert!(copy == value);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        assert_eq!(client.incr("n").await.unwrap(), 13);
        client.close().await;
    });
}

/// The cancel storm: `STORM` operations in all (a quarter per server), or a million. The server pauses now and then, so
/// that deadlines pass.
pub fn cancel_storm<H: Host>(kind: Kind, engine: EngineKind) {
    inside::<H>(plain(kind), engine, async |live| {
        let operations = count_from_env("STORM", 1_000_000) / Kind::ALL.len() as u64;
        let admin = live.connect::<H>(live.options().allow_admin(true)).await;
        let over = Rc::new(Cell::new(false));
        let (pauser, is_over) = (admin.clone(), over.clone());
        let pauses = spawn::<H, _>(async move {
            while !is_over.get() {
                // (It goes on when the server next looks at its clock, up to 100 ms later.)
                pauser.cmd::<()>("CLIENT PAUSE").arg(5).await.unwrap();
                pause::<H>(Duration::from_millis(150)).await;
            }
        });
        let timeouts = storm::<H>(live.options(), operations, count_from_env("SEED", 3), true).await;
        over.set(true);
        pauses.result().await;
        admin.close().await;
        assert!(timeouts > 0, "no deadline has passed");
    });
}

/// H38: without io_uring, all of this suite.
pub fn epoll_instead<H: Host>(name: &str, kind: Kind) {
    if !crate::denied::is_child() {
        return crate::denied::run_child(name);
    }
    let server = plain(kind).start().unwrap();
    let options = ConnectOptions::try_from(server.url()).unwrap().allow_admin(true);
    crate::denied::child::<H>(&options, async |client| everyday(&client).await);
    drop(server);
    for test in [
        everyday_commands::<H>,
        unix_socket::<H>,
        passwords_and_users::<H>,
        urls_and_databases::<H>,
        client_list::<H>,
        killed_under_load::<H>,
        stopped_under_load::<H>,
        blocking_commands_are_refused::<H>,
        no_room_for_clients::<H>,
        big_values::<H>,
        cancel_storm::<H>,
    ] {
        test(kind, EngineKind::Auto);
    }
    crate::denied::say_done();
}

/// Instantiates the suite for a host: `live!(name: crate::Host; server: Kind Engine, …)`.
#[macro_export]
macro_rules! live {
    ($name:ident: $host:ty; $($server:ident: $kind:ident $engine:ident),+ $(,)?) => {
        mod $name {
            $(mod $server {
                $crate::live_tests!($host, $kind, $engine);
            })+
        }
    };
}

/// Instantiates [`epoll_instead`] for a host that runs without io_uring.
#[macro_export]
macro_rules! live_denied {
    ($name:ident: $host:ty; $kind:ident) => {
        mod $name {
            mod live {
                #[test]
                fn epoll_instead() {
                    let name = concat!(module_path!(), "::epoll_instead");
                    $crate::kit::run(name, || {
                        $crate::live::epoll_instead::<$host>(name, $crate::Kind::$kind)
                    });
                }
            }
        }
    };
}

/// The list of all live tests, for one host, server and engine.
#[doc(hidden)]
#[macro_export]
macro_rules! live_tests {
    ($host:ty, $kind:ident, $engine:ident) => {
        $crate::live_tests! { $host, $kind, $engine;
            live: everyday_commands, unix_socket, passwords_and_users, urls_and_databases, client_list, killed_under_load,
                stopped_under_load, blocking_commands_are_refused, no_room_for_clients, big_values, cancel_storm;
            live_faults: every_byte_split, latency_with_pipelining, f07_callers_gone_before_late_replies,
                f09_late_set_up_replies, f19_both_sides_write, f19_deadline_shorter_than_the_transfer,
                no_way_in_for_a_while, swallowed_connects_time_out, another_server_at_the_same_address;
            live_half_open: f15_half_open, f15_half_open_under_load, f15_found_at_the_first_call, f15_large_write,
                f17_idle_connections_lost_at_once, f17_half_of_them_silent, f17_lost_in_the_turn_of_the_write;
            live_cuts: cut_towards_the_server, cut_towards_the_client, large_values_cut, cut_under_load,
                corrupt_replies;
            live_storm: storm;
        }
    };
    ($host:ty, $kind:ident, $engine:ident; $($group:ident: $($test:ident),+;)+) => {
        $(mod $group {
            $(#[test]
            fn $test() {
                let name = concat!(module_path!(), "::", stringify!($test));
                $crate::kit::run(name, || {
                    $crate::$group::$test::<$host>($crate::Kind::$kind, $crate::EngineKind::$engine);
                });
            })+
        })+
    };
}
