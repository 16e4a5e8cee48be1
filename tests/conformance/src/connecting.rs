//! Making connections: eagerly, lazily, in vain, and what set-up does when the server is difficult.

use crate::host::{Host, spawn};
use crate::kit::{Kit, descriptors, descriptors_at_rest, inside, inside_with, pause, poll_once, until};
use respiral::error::{ConnectionFailure, Stage};
use respiral::io::{Answer, Resolver};
use respiral::{Client, ConnectOptions, Delivery, EngineKind, Error, Protocol, Runtime, Value};
use respiral_testkit::{Accept, Server};
use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// CONN-001, CONN-029: when `connect` returns, every connection of the pool is up.
pub fn eager_connects_all<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(3)).await;
        assert_eq!(kit.server.connections_accepted(), 3);
        assert!(client.is_connected());
        client.set("k", "v").await.unwrap();
        assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");
        assert_eq!(kit.server.connections_accepted(), 3);
        client.close().await;
    });
}

/// CONN-003, CONN-004: a lazy client opens nothing before its first command.
pub fn lazy_opens_nothing<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.lazy(kit.options());
        let call = client.get::<Option<String>, _>("k");
        pause::<H>(Duration::from_millis(30)).await;
        assert_eq!(kit.server.connections_accepted(), 0);
        assert!(!client.is_connected());
        assert_eq!(call.await.unwrap(), None);
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;

        // One that is never used leaves nothing behind.
        drop(kit.lazy(kit.options()));
        let unused = kit.lazy(kit.options());
        unused.close().await;
        assert_eq!(kit.server.connections_accepted(), 1);
    });
}

/// CONN-005: options are checked before any socket is opened.
pub fn invalid_options_open_nothing<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let url = kit.server.url();
        let before = descriptors_at_rest();
        for bad in [
            kit.options().connections(0),
            kit.options().database(-1),
            kit.options().engine(kit.engine_options().buffer_count(3)),
        ] {
            let error = Client::connect_on(H::runtime(), bad.clone()).await.unwrap_err();
            assert!(matches!(error, Error::Config(_)), "{error:?}");
            let error = Client::lazy_on(H::runtime(), bad).unwrap_err();
            assert_eq!(error.delivery(), Delivery::NotExecuted);
        }
        for bad in [format!("{url}?speed=11"), "http://127.0.0.1".to_owned(), format!("{url}/x")] {
            let error = Client::connect_on(H::runtime(), bad).await.unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{error:?}");
        }
        assert_eq!(kit.server.connections_accepted(), 0);
        assert!(descriptors_at_rest() <= before);
    });
}

/// CONN-006: clones are the same client.
pub fn clones_share<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(2)).await;
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let clone = client.clone();
                spawn::<H, _>(async move { clone.incr("n").await.unwrap() })
            })
            .collect();
        let mut sums = Vec::new();
        for task in tasks {
            sums.push(task.result().await);
        }
        sums.sort_unstable();
        assert_eq!(sums, (1..=50).collect::<Vec<i64>>());
        assert_eq!(kit.server.connections_accepted(), 2);
        let other = client.clone();
        drop(client);
        assert_eq!(other.incr("n").await.unwrap(), 51);
        other.close().await;
    });
}

/// CONN-002: nobody listens; `connect` itself says so, and so does the first command of a lazy client.
pub fn closed_port<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.stop().unwrap();
        let check = |error: Error| {
            let Error::Connection(error) = &error else { panic!("{error:?}") };
            assert_eq!(error.delivery, Delivery::NotExecuted);
            assert!(
                matches!(error.failure, ConnectionFailure::Io { kind, .. } if kind == std::io::ErrorKind::ConnectionRefused)
            );
            assert_eq!(*error.endpoint, *kit.server.addr().to_string());
        };
        check(Client::connect_on(H::runtime(), kit.options()).await.unwrap_err());
        check(Client::connect_on(H::runtime(), kit.options().connections(4)).await.unwrap_err());
        let client = kit.lazy(kit.options());
        for _ in 0..3 {
            let error = client.get::<(), _>("k").await.unwrap_err();
            assert_eq!(error.command(), Some("GET"));
            check(error);
        }
        // It is the same client that works when the server is back.
        kit.server.restart().unwrap();
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
    });
}

/// The driver as a task of the caller's choice.
pub fn driver_placed_by_hand<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let (client, driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let driver = spawn::<H, _>(driver);
        client.connected().await.unwrap();
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
        assert!(driver.is_over());

        // Beside the caller, in the main future.
        let (client, driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let mut driver = pin!(driver);
        let mut work = pin!(async {
            for _ in 0..100 {
                client.incr("n").await.unwrap();
            }
            client.close().await;
        });
        std::future::poll_fn(|cx| {
            let _ = driver.as_mut().poll(cx);
            work.as_mut().poll(cx)
        })
        .await;
    });
}

/// A driver that moves from one task to another, at any moment, goes on.
pub fn driver_moves_between_tasks<H: Host>(engine: EngineKind) {
    /// Polls the driver a few times; true when the driver is over.
    struct Lent(Rc<Cell<Option<Pin<Box<respiral::Driver>>>>>, u32);
    impl Future for Lent {
        type Output = bool;
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
            let mut driver = self.0.take().expect("one at a time");
            let over = driver.as_mut().poll(cx).is_ready();
            self.0.set(Some(driver));
            self.1 -= 1;
            if over || self.1 == 0 { Poll::Ready(over) } else { Poll::Pending }
        }
    }
    inside::<H>(engine, async |kit| {
        let (client, driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let place = Rc::new(Cell::new(Some(Box::pin(driver))));
        let lent = place.clone();
        let carrier = spawn::<H, _>(async move {
            let mut polls = 1;
            while !spawn::<H, _>(Lent(lent.clone(), polls)).result().await {
                polls = polls % 7 + 1;
            }
        });
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    for _ in 0..100 {
                        client.incr("n").await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        assert_eq!(client.incr("n").await.unwrap(), 1601);
        client.close().await;
        carrier.result().await;
        drop(place);
    });
}

/// Several may wait for the same connections, and one that leaves takes nothing from the others.
pub fn several_wait_for_connected<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.accept(Accept::Silent).unwrap();
        let client = kit.lazy(kit.options().connections(2));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.connected().await })
            })
            .collect();
        kit.until("two connections", |stats| stats.connections_accepted == 2).await;
        {
            let mut left = pin!(client.connected());
            assert!(poll_once(&mut left).is_pending());
        }
        kit.server.open_connections().resume();
        for task in tasks {
            task.result().await.unwrap();
        }
        client.close().await;

        // And each of them is told when it fails.
        kit.server.stop().unwrap();
        let client = kit.lazy(kit.options());
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.connected().await })
            })
            .collect();
        for task in tasks {
            assert!(task.result().await.unwrap_err().is_connection());
        }
        client.close().await;
        assert_eq!(client.connected().await, Err(Error::Closed(Delivery::NotExecuted)));
    });
}

/// `connected` tells the truth after a loss, too.
pub fn connected_after_a_loss<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(2)).await;
        kit.server.stop().unwrap();
        until::<H>("the loss is seen", || !client.is_connected()).await;
        assert!(client.connected().await.unwrap_err().is_connection());
        kit.server.restart().unwrap();
        client.connected().await.unwrap();
        assert!(client.is_connected());
        assert_eq!(kit.server.stats().connections_open, 2);
        client.close().await;
    });
}

/// A caller that gives up connecting leaves no socket and no task behind (F-09).
pub fn connect_given_up<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.accept(Accept::Silent).unwrap();
        // monoio closes what a pause waited for a little later.
        pause::<H>(Duration::from_millis(1)).await;
        let before = descriptors_at_rest();
        for _ in 0..10 {
            let accepted = kit.server.connections_accepted();
            let mut connect = Box::pin(Client::connect_on(H::runtime(), kit.options()));
            std::future::poll_fn(|cx| {
                assert!(connect.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            kit.until("the connection", |stats| stats.connections_accepted > accepted).await;
            drop(connect);
        }
        until::<H>("descriptors are closed", || descriptors() <= before + 10).await;
        kit.server.open_connections().resume();
        kit.until("no connection", |stats| stats.connections_open == 0).await;
        until::<H>("descriptors are closed", || descriptors() <= before).await;
    });
}

/// CONN-048: a server that accepts and says nothing.
pub fn silent_server<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.accept(Accept::Silent).unwrap();
        let options = kit.options().command_timeout(Some(Duration::from_millis(80)));
        let error = Client::connect_on(H::runtime(), options.clone()).await.unwrap_err();
        let Error::Timeout(timeout) = &error else { panic!("{error:?}") };
        assert_eq!(timeout.command.as_deref(), Some("HELLO"));
        assert_eq!(timeout.delivery, Delivery::NotExecuted);

        let options = options.command_timeout(None).connect_timeout(Duration::from_millis(80));
        let error = Client::connect_on(H::runtime(), options).await.unwrap_err();
        let Error::Timeout(timeout) = &error else { panic!("{error:?}") };
        assert_eq!(timeout.stage, Stage::Connecting);
    });
}

/// CONN-009, CONN-016 to CONN-019: which protocol is spoken.
pub fn protocols<H: Host>(engine: EngineKind) {
    for (server, resp3) in [
        (Server::builder(), true),
        (Server::builder().resp2_only(), false),
        (Server::builder().refuse_resp3(), false),
    ] {
        let server = server.record().start().unwrap();
        inside_with::<H>(Kit::with(engine, server), async |kit| {
            let client = kit.connect().await;
            client.set("k", "v").await.unwrap();
            assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");
            assert_eq!(client.get::<Option<String>, _>("none").await.unwrap(), None);
            client.close().await;
            let forced = Client::connect_on(H::runtime(), kit.options().protocol(Protocol::Resp3)).await;
            if resp3 {
                forced.unwrap().close().await;
            } else {
                let error = forced.unwrap_err();
                assert!(matches!(&error, Error::Config(_)), "{error:?}");
            }
            kit.server.take_commands();
            let client = kit.connect_with(kit.options().protocol(Protocol::Resp2)).await;
            assert_eq!(client.get::<Option<String>, _>("none").await.unwrap(), None);
            assert!(!kit.server.commands().iter().any(|command| command.is("HELLO")));
            client.close().await;
        });
    }
}

/// CONN-024: in a pool of which one socket fell back to RESP2, a raw reply has the shape of the socket that served it; a
/// typed one is the same from both.
pub fn raw_replies_keep_their_shape<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.on("HELLO").times(1).reply_error("ERR unknown command 'HELLO'");
        let client = kit.connect_with(kit.options().connections(2)).await;
        client.hset("h", [("a", 1), ("b", 2)]).await.unwrap();
        let (mut maps, mut arrays) = (0, 0);
        for _ in 0..8 {
            match client.cmd::<Value>("HGETALL").arg("h").await.unwrap() {
                Value::Map(pairs) if pairs.len() == 2 => maps += 1,
                Value::Array(flat) if flat.len() == 4 => arrays += 1,
                other => panic!("{other:?}"),
            }
        }
        for _ in 0..4 {
            let typed: std::collections::BTreeMap<String, i64> = client.hgetall("h").await.unwrap();
            assert_eq!(typed.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        }
        assert!(maps > 0 && arrays > 0, "{maps} maps, {arrays} arrays");
        client.close().await;
    });
}

/// CONN-025, CONN-037: passwords and users.
pub fn authentication<H: Host>(engine: EngineKind) {
    for server in [Server::builder(), Server::builder().resp2_only()] {
        let server = server.password("default", "secret").password("app", "p@ss").start().unwrap();
        inside_with::<H>(Kit::with(engine, server), async |kit| {
            for options in [kit.options().password("secret"), kit.options().username("app").password("p@ss")]
            {
                let client = kit.connect_with(options).await;
                assert_eq!(client.get::<Option<String>, _>("k").await.unwrap(), None);
                client.close().await;
            }
            for options in [
                kit.options(),
                kit.options().password("wrong-one"),
                kit.options().username("app").password("wrong-one"),
            ] {
                let connected = Client::connect_on(H::runtime(), options.clone()).await;
                let error = match connected {
                    // RESP2 without a password: the first command meets it.
                    Ok(client) => {
                        let error = client.get::<(), _>("k").await.unwrap_err();
                        client.close().await;
                        assert!(matches!(&error, Error::Server(e) if e.code() == "NOAUTH"), "{error:?}");
                        continue;
                    }
                    Err(error) => error,
                };
                assert!(matches!(error, Error::Auth(_)), "{error:?}");
                assert!(!format!("{error} {error:?}").contains("wrong-one"));
                assert_eq!(error.delivery(), Delivery::NotExecuted);
            }
            kit.until("no connection", |stats| stats.connections_open == 0).await;
        });
    }
}

/// CONN-035, CONN-036, CONN-140: what set-up sends.
pub fn settings_are_sent<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().client_name("worker-1").database(3)).await;
        for text in ["HELLO 3", "CLIENT SETNAME worker-1", "SELECT 3", "CLIENT SETINFO LIB-NAME respiral"] {
            assert_eq!(kit.count(text), 1, "{text}: {:?}", kit.server.commands());
        }
        client.set("k", "v").await.unwrap();
        assert_eq!(kit.server.execute(["GET", "k"]), b"$-1\r\n");
        client.close().await;
        kit.server.take_commands();
        let client = kit.connect_with(kit.options().set_info(false)).await;
        assert_eq!(kit.server.commands().len(), 1, "{:?}", kit.server.commands());
        client.close().await;
    });
}

/// F-21: optional steps may be refused.
pub fn f21_optional_steps_refused<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.deny(&["CLIENT SETINFO", "CLIENT SETNAME"]);
        let options = kit.options().client_name("worker");
        let client = kit.connect_with(options.clone()).await;
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
        kit.server.remove_rules();
        kit.server.on("CLIENT SETINFO").reply_error("ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.");
        let client = kit.connect_with(options).await;
        assert_eq!(client.incr("n").await.unwrap(), 2);
        client.close().await;

        // A mandatory one is told by name, with the server's words.
        kit.server.remove_rules();
        kit.server.deny(&["SELECT"]);
        let error = Client::connect_on(H::runtime(), kit.options().database(1)).await.unwrap_err();
        assert!(matches!(&error, Error::Server(e) if e.code() == "NOPERM"), "{error:?}");
        assert_eq!(error.command(), Some("SELECT"));
    });
}

/// F-21: a permission that is withdrawn later costs the command, not the connection.
pub fn f21_permission_withdrawn<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        kit.server.deny(&["INCR"]);
        let error = client.incr("n").await.unwrap_err();
        assert!(matches!(&error, Error::Server(e) if e.code() == "NOPERM"), "{error:?}");
        assert_eq!((error.delivery(), error.command()), (Delivery::Answered, Some("INCR")));
        assert_eq!(client.get::<Option<String>, _>("n").await.unwrap(), None);
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;
    });
}

/// F-09: late replies to optional steps never reach a caller.
pub fn f09_late_set_up_replies<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.execute(["SET", "a", "1"]);
        kit.server.execute(["SET", "b", "2"]);
        for step in ["CLIENT SETINFO", "CLIENT SETNAME", "SELECT"] {
            kit.server.on(step).times(2).delay(Duration::from_millis(150));
        }
        let options = kit.options().client_name("n").command_timeout(Some(Duration::from_millis(60)));
        let client = kit.lazy(options);
        for _ in 0..200 {
            match (client.get::<String, _>("a").await, client.get::<String, _>("b").await) {
                (Ok(a), Ok(b)) => {
                    assert_eq!((a.as_str(), b.as_str()), ("1", "2"));
                    return client.close().await;
                }
                (a, b) => {
                    assert!(a.is_err() || a.unwrap() == "1");
                    assert!(b.is_err() || b.unwrap() == "2");
                }
            }
        }
        panic!("set-up never ended");
    });
}

/// F-23: set-up waits for a server that loads; a connection is never given out half made.
pub fn f23_loading_during_set_up<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.loading(&["SELECT"], 3);
        let options = kit.options().database(3);
        let client = kit.connect_with(options.clone()).await;
        client.set("k", "v").await.unwrap();
        assert_eq!(kit.server.execute(["GET", "k"]), b"$-1\r\n", "it went to database 0");
        assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");

        // A user's command is answered as it is: transient, and not executed.
        kit.server.remove_rules();
        kit.server.loading(&["SET"], 1);
        let error = client.set("k", "w").await.unwrap_err();
        assert!(error.is_transient());
        assert_eq!(error.delivery(), Delivery::NotExecuted);
        client.set("k", "w").await.unwrap();
        client.close().await;

        // Longer than the budget: the server's answer, not a timeout.
        kit.server.remove_rules();
        kit.server.loading(&["SELECT"], u64::MAX);
        let options = options.connect_timeout(Duration::from_millis(250));
        let error = Client::connect_on(H::runtime(), options).await.unwrap_err();
        assert!(matches!(&error, Error::Server(e) if e.code() == "LOADING"), "{error:?}");
    });
}

/// CONN-141: Unix sockets.
pub fn unix_socket<H: Host>(engine: EngineKind) {
    let path = std::env::temp_dir().join(format!("respiral-conformance-{}.sock", std::process::id()));
    let server = Server::builder().bind_unix(&path).start().unwrap();
    inside_with::<H>(Kit::with(engine, server), async |kit| {
        let options = ConnectOptions::unix(&path).engine(kit.engine_options());
        let client = kit.connect_with(options.clone()).await;
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
        kit.server.stop().unwrap();
        let error = Client::connect_on(H::runtime(), options).await.unwrap_err();
        assert!(error.is_connection() && error.to_string().contains("respiral-conformance"), "{error}");
    });
}

/// A host name is looked up without blocking the thread; one that does not exist is named.
pub fn host_names<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let port = kit.server.addr().port();
        let named = |host| ConnectOptions::tcp(host, port).engine(kit.engine_options());
        let client = kit.connect_with(named("localhost")).await;
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
        let error = Client::connect_on(H::runtime(), named("no-such-host.invalid")).await.unwrap_err();
        let Error::Connection(error) = &error else { panic!("{error:?}") };
        assert!(matches!(error.failure, ConnectionFailure::Resolve(_)), "{error:?}");
    });
}

/// Connections that ask for the same name at the same time share a look-up; later ones ask anew. A resolver that drops
/// the question ends the attempt.
pub fn look_ups_are_shared<H: Host>(engine: EngineKind) {
    #[derive(Default)]
    struct Scripted {
        questions: Cell<u32>,
        /// The first question for this name is kept.
        kept: RefCell<Option<Answer>>,
    }
    impl Resolver for Scripted {
        fn resolve(&self, host: &str, port: u16, answer: Answer) {
            self.questions.set(self.questions.get() + 1);
            match host {
                "silent" if self.kept.borrow().is_none() => *self.kept.borrow_mut() = Some(answer),
                "unknown" => drop(answer),
                _ => answer.send(Ok(vec![([127, 0, 0, 1], port).into()])),
            }
        }
    }
    inside::<H>(engine, async |kit| {
        let port = kit.server.addr().port();
        let resolver = Rc::new(Scripted::default());
        let named =
            |host| ConnectOptions::tcp(host, port).engine(kit.engine_options()).resolver(resolver.clone());
        let client = kit.connect_with(named("known").connections(50)).await;
        assert_eq!((resolver.questions.get(), kit.server.connections_accepted()), (1, 50));
        kit.server.open_connections().close();
        until::<H>("all are back", || kit.server.connections_accepted() == 100).await;
        assert_eq!(client.incr("n").await.unwrap(), 1);
        assert!(resolver.questions.get() > 1);
        client.close().await;
        let error = Client::connect_on(H::runtime(), named("unknown")).await.unwrap_err();
        let Error::Connection(error) = &error else { panic!("{error:?}") };
        assert!(matches!(error.failure, ConnectionFailure::Resolve(_)), "{error:?}");

        // A look-up that is never answered costs the attempt, and not the name for ever.
        let options = named("silent").connections(3).connect_timeout(Duration::from_millis(50));
        let client = Client::lazy_on(H::runtime(), options).unwrap();
        client.incr("n").await.unwrap_err();
        assert_eq!(client.incr("n").await.unwrap(), 2);
        client.close().await;
    });
}

/// What a runtime is asked for: two tasks and two descriptors per client, nothing per command.
pub fn asks_little_of_the_host<H: Host>(engine: EngineKind) {
    #[derive(Clone)]
    struct Counting<R> {
        runtime: R,
        tasks: Rc<Cell<u32>>,
        watches: Rc<Cell<u32>>,
    }
    impl<R: Runtime> Runtime for Counting<R> {
        type Watch = R::Watch;
        fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
            self.tasks.set(self.tasks.get() + 1);
            self.runtime.spawn_local(task);
        }
        fn watch(&self, descriptor: std::os::fd::OwnedFd) -> std::io::Result<R::Watch> {
            self.watches.set(self.watches.get() + 1);
            self.runtime.watch(descriptor)
        }
    }
    inside::<H>(engine, async |kit| {
        let runtime = Counting { runtime: H::runtime(), tasks: Rc::default(), watches: Rc::default() };
        let client = Client::connect_on(runtime.clone(), kit.options().connections(4)).await.unwrap();
        for _ in 0..50 {
            client.incr("n").await.unwrap();
        }
        kit.server.open_connections().close();
        until::<H>("it works again", || client.is_connected()).await;
        client.close().await;
        assert_eq!((runtime.tasks.get(), runtime.watches.get()), (2, 2));
    });
}

/// More connections than the completion queue has entries, all at once: what does not fit must not hide that there is
/// something (the driver once waited for its own wake-up behind a full queue).
pub fn many_connections_at_once<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(1500)).await;
        assert_eq!(kit.server.connections_accepted(), 1500);
        for count in 1..=100 {
            assert_eq!(client.incr("n").await.unwrap(), count);
        }
        client.close().await;
    });
}
