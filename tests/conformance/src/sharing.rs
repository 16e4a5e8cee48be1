//! Many callers, few connections: pipelining, replies in place, large values, limits.

use crate::host::{Host, spawn};
use crate::kit::{Kit, inside, inside_with, pause, poll_once, until};
use bytes::Bytes;
use respiral::command::Command;
use respiral::error::Stage;
use respiral::resp::{Encoder, ToArgs};
use respiral::{Blob, Client, ConnectOptions, Delivery, EngineKind, EngineOptions, Error, Protocol, Value};
use respiral_testkit::{Action, Server, alloc_count};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Callers that ask at the same time travel together: the server needs far fewer reads than there are commands.
pub fn callers_are_pipelined<H: Host>(engine: EngineKind) {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 100;
    let (port, reads) = reply_to_gets();
    let mut host = H::start();
    H::block_on(&mut host, async {
        let options = ConnectOptions::tcp("127.0.0.1", port).protocol(Protocol::Resp2).set_info(false);
        let options = options.engine(EngineOptions::new().kind(engine));
        let client = Client::connect_on(H::runtime(), options).await.unwrap();
        let tasks: Vec<_> = (0..CALLERS)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    for _ in 0..ROUNDS {
                        assert_eq!(client.get::<i64, _>("k").await.unwrap(), 1);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
    drop(host);
    let (commands, reads) = reads.join().unwrap();
    assert_eq!(commands, CALLERS * ROUNDS);
    assert!(reads * 4 < commands, "{reads} reads for {commands} commands");
}

/// A server that answers `GET k` with 1 and counts its reads; it ends with its first client.
pub(crate) fn reply_to_gets() -> (u16, std::thread::JoinHandle<(usize, usize)>) {
    const FRAME: usize = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".len();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let (mut buffer, mut bytes, mut reads, mut answered) = (vec![0; 1 << 20], 0, 0, 0);
        loop {
            match peer.read(&mut buffer) {
                Ok(0) | Err(_) => return (answered, reads),
                Ok(read) => {
                    bytes += read;
                    reads += 1;
                    let due = bytes / FRAME - answered;
                    answered += due;
                    if peer.write_all(&b"$1\r\n1\r\n".repeat(due)).is_err() {
                        return (answered, reads);
                    }
                }
            }
        }
    });
    (port, thread)
}

/// A reply in place: the bytes, in one piece when they fit a buffer, without a copy.
pub fn replies_in_place<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        for len in [0, 1, 15, 16, 1000, 1024, 5000, 16_000, 16_384, 100_000] {
            let value: Vec<u8> = (0..len).map(|at: usize| (at % 251) as u8).collect();
            client.set("k", &value).await.unwrap();
            let blob: Blob = client.get("k").await.unwrap();
            assert_eq!(blob.len(), len);
            assert!(blob == value[..], "{len}");
            if len < 1024 {
                assert!(blob.as_slice().is_some(), "{len}");
            }
            assert_eq!(blob.to_vec(), value);
            let missing: Option<Blob> = client.get("none").await.unwrap();
            assert!(missing.is_none());
        }
        client.close().await;
    });
}

/// 1 MiB both ways, many at a time, on several connections.
pub fn large_values<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(2)).await;
        let tasks: Vec<_> = (0..8_u8)
            .map(|task| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    let value = vec![task; 1 << 20];
                    for _ in 0..3 {
                        client.set(&[b'k', task][..], &value).await.unwrap();
                        let blob: Blob = client.get(&[b'k', task][..]).await.unwrap();
                        assert!(blob == value[..]);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
}

/// Large arguments that are shared already are sent from where they lie: nothing of their size is allocated. They are
/// given back when the server has answered; that their owner then uses the client does no harm (H15).
pub fn large_values_by_reference<H: Host>(engine: EngineKind) {
    const LEN: usize = 1 << 20;
    struct Owner {
        bytes: Vec<u8>,
        given_back: Arc<AtomicUsize>,
    }
    thread_local! {
        static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
    }
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            CLIENT.with(|client| client.borrow().as_ref().map(Client::is_connected));
            self.given_back.fetch_add(1, Ordering::SeqCst);
        }
    }
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        CLIENT.with(|place| *place.borrow_mut() = Some(client.clone()));
        let given_back = Arc::new(AtomicUsize::new(0));
        let value =
            |byte| Bytes::from_owner(Owner { bytes: vec![byte; LEN], given_back: given_back.clone() });
        client.set("k", value(0)).await.unwrap();
        let values: Vec<Bytes> = (1..=10).map(value).collect();
        let before = alloc_count::snapshot();
        for (round, value) in values.into_iter().enumerate() {
            match round % 2 {
                0 => client.set("k", value).await.unwrap(),
                _ => client.cmd("SET").arg("k").arg(value).await.unwrap(),
            }
        }
        let counts = alloc_count::snapshot() - before;
        assert!(counts.bytes_allocated < 10 * LEN as u64 / 2, "{counts:?}");
        let blob: Blob = client.get("k").await.unwrap();
        assert!(blob == vec![10; LEN][..]);
        drop(blob);
        until::<H>("all are given back", || given_back.load(Ordering::SeqCst) == 11).await;
        // What was never sent comes back as well.
        kit.server.on("SET").withhold();
        let mut dropped = client.set("k", value(1));
        assert!(poll_once(&mut dropped).is_pending());
        drop(dropped);
        let mut pending = client.set("k", value(2));
        assert!(poll_once(&mut pending).is_pending());
        client.close().await;
        assert_eq!(pending.await.unwrap_err().delivery(), Delivery::NotExecuted);
        until::<H>("the rest is given back", || given_back.load(Ordering::SeqCst) == 13).await;
        CLIENT.with(|place| drop(place.borrow_mut().take()));
    });
}

/// F-19: the server writes 64 MiB before it reads on, while the client writes as much.
pub fn f19_both_sides_write<H: Host>(engine: EngineKind) {
    const LEN: usize = 64 << 20;
    let server = Server::builder().socket_buffers(64 * 1024).start().unwrap();
    server.new_connections().read_only_when_written();
    server.execute(["SET".as_bytes(), b"big", &vec![b'x'; LEN]]);
    inside_with::<H>(Kit::with(engine, server), async |kit| {
        let client = kit.connect_with(kit.options().command_timeout(None)).await;
        write_both_ways::<H>(&client, LEN).await;
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;
    });
}

/// Fetches `big`, of `len` bytes, and stores as much, at the same time.
pub(crate) async fn write_both_ways<H: Host>(client: &Client, len: usize) {
    let (reader, writer, last) = (client.clone(), client.clone(), client.clone());
    let get = spawn::<H, _>(async move {
        let blob: Blob = reader.get("big").await.unwrap();
        assert_eq!(blob.len(), len);
        assert!(blob.chunks().all(|chunk| chunk.iter().all(|byte| *byte == b'x')));
    });
    let set = spawn::<H, _>(async move {
        let value = vec![b'y'; len - 1];
        writer.set("big2", &value).await.unwrap();
    });
    let small = spawn::<H, _>(async move { last.incr("n").await.unwrap() });
    get.result().await;
    set.result().await;
    assert_eq!(small.result().await, 1);
    assert_eq!(client.cmd::<usize>("STRlen").arg("big2").await.unwrap(), len - 1);
}

/// F-19: 10 000 GETs of 10 KiB in one go.
pub fn f19_ten_thousand_at_once<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect().await;
        client.set("k", vec![7_u8; 10 * 1024]).await.unwrap();
        let mut calls: Vec<_> = (0..10_000).map(|_| client.get::<Blob, _>("k")).collect();
        std::future::poll_fn(|cx| {
            calls.retain_mut(|call| match std::pin::Pin::new(call).poll(cx) {
                std::task::Poll::Ready(blob) => {
                    assert_eq!(blob.unwrap().len(), 10 * 1024);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        client.close().await;
    });
}

/// H21: kept small replies pin no receive buffers.
pub fn h21_small_replies_are_kept<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect_with(kit.options().engine(kit.engine_options().buffer_count(16))).await;
        client.set("k", "value").await.unwrap();
        let mut kept: Vec<Blob> = Vec::new();
        for _ in 0..10_000 {
            kept.push(client.get("k").await.unwrap());
        }
        for _ in 0..1000 {
            assert_eq!(client.get::<String, _>("k").await.unwrap(), "value");
        }
        assert!(kept.iter().all(|blob| *blob == b"value"[..]));
        client.close().await;
    });
}

/// H16, H20: callers keep as much as the pool has, and the client goes on.
pub fn h20_large_replies_are_kept<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let options = kit.options().engine(kit.engine_options().buffer_count(8)).connections(3);
        let client = kit.connect_with(options).await;
        let value: Vec<u8> = (0..60_000).map(|at| (at % 253) as u8).collect();
        client.set("k", &value).await.unwrap();
        let tasks: Vec<_> = (0..30)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.get::<Blob, _>("k").await.unwrap() })
            })
            .collect();
        let mut kept = Vec::new();
        for task in tasks {
            kept.push(task.result().await);
        }
        for n in 1..=100 {
            assert_eq!(client.incr("n").await.unwrap(), n);
        }
        assert!(kept.iter().all(|blob| *blob == value[..]));
        drop(kept);
        assert_eq!(client.get::<Vec<u8>, _>("k").await.unwrap().len(), value.len());
        client.close().await;
    });
}

/// CONN-029: the connections share the load.
pub fn connections_share_the_load<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(4)).await;
        kit.server.on("INCR").withhold();
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.incr("n").await.unwrap() })
            })
            .collect();
        kit.until("all arrived", |stats| stats.withheld == 64).await;
        for connection in 1..=4 {
            let got =
                kit.server.commands().iter().filter(|c| c.connection == connection && c.is("INCR")).count();
            assert_eq!(got, 16, "connection {connection}");
        }
        kit.server.remove_rules();
        kit.server.release();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
}

/// CONN-040: no more commands are in flight than the option allows; the rest wait their turn, in order.
pub fn in_flight_limit<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().max_inflight_commands(4)).await;
        kit.server.on("INCR").times(4).withhold();
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.incr("n").await.unwrap() })
            })
            .collect();
        kit.until("four arrived", |stats| stats.withheld == 4).await;
        pause::<H>(Duration::from_millis(20)).await;
        assert_eq!(kit.count("INCR n"), 4);
        let late = client.incr("n").timeout(Duration::from_millis(30)).await.unwrap_err();
        let Error::Timeout(timeout) = &late else { panic!("{late:?}") };
        assert_eq!((timeout.stage, timeout.delivery), (Stage::WaitingForCapacity, Delivery::NotExecuted));
        kit.server.release();
        for (at, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.result().await, at as i64 + 1);
        }
        client.close().await;
    });
}

/// CONN-040: nor more bytes.
pub fn byte_limit<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().max_queued_bytes(100_000)).await;
        kit.server.on("SET").times(2).withhold();
        let tasks: Vec<_> = (0..20_u8)
            .map(|task| {
                let client = client.clone();
                spawn::<H, _>(async move { client.set(&[b'k', task][..], vec![task; 60_000]).await.unwrap() })
            })
            .collect();
        kit.until("two arrived", |stats| stats.withheld == 2).await;
        pause::<H>(Duration::from_millis(20)).await;
        let before = kit.server.bytes_received();
        let late = client.incr("n").timeout(Duration::from_millis(30)).await.unwrap_err();
        assert_eq!(late.delivery(), Delivery::NotExecuted);
        assert!(matches!(late, Error::Timeout(ref t) if t.stage == Stage::WaitingForCapacity), "{late:?}");
        assert_eq!(kit.server.bytes_received(), before);
        kit.server.release();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
}

/// A command of the user's that does not write what it announced is refused, and never sent: the server would take what
/// follows for a part of it.
pub fn torn_frames_are_not_sent<H: Host>(engine: EngineKind) {
    /// `GET k` that announces so many arguments.
    struct Lying(usize);
    impl Command for Lying {
        fn name(&self) -> respiral::error::CommandName {
            "GET".into()
        }

        fn encode(&self, encoder: &mut Encoder<'_>) {
            encoder.begin(self.0);
            ("GET", "k").write(encoder);
        }
    }
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().max_inflight_commands(1)).await;
        for announced in [0, 1, 3] {
            let torn = client.call::<_, Value>(Lying(announced)).await.unwrap_err();
            let Error::InvalidArgument(invalid) = &torn else { panic!("{announced}: {torn:?}") };
            assert_eq!((&*invalid.what, torn.delivery()), ("command", Delivery::NotExecuted));
            // This one has to wait for room.
            let (mut first, mut torn) = (client.incr("n"), client.call::<_, Value>(Lying(announced)));
            assert!(poll_once(&mut first).is_pending() && poll_once(&mut torn).is_pending());
            first.await.unwrap();
            let torn = torn.await.unwrap_err();
            assert!(matches!(torn, Error::InvalidArgument(_)), "{announced}: {torn:?}");
        }
        assert_eq!(client.incr("n").await.unwrap(), 4);
        assert_eq!(client.call::<_, Option<i64>>(Lying(2)).await.unwrap(), None);
        client.close().await;
    });
}

/// F-13, CONN-142, CONN-033: refused commands are refused before anything is sent, by the client alone.
pub fn refused_commands<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        kit.server.take_commands();
        for line in [
            "BLPOP q 5",
            "XREAD BLOCK 2000 STREAMS s $",
            "SELECT 1",
            "SUBSCRIBE c",
            "MULTI",
            "FLUSHALL",
            "HELLO 3",
            "",
        ] {
            let error = client.cmd::<()>(line).await.unwrap_err();
            let Error::InvalidArgument(invalid) = &error else { panic!("{line}: {error:?}") };
            assert_eq!(error.delivery(), Delivery::NotExecuted);
            if !line.is_empty() {
                assert_eq!(invalid.what, line.split(' ').next().unwrap());
            }
        }
        assert_eq!(client.incr("n").await.unwrap(), 1);
        assert_eq!(kit.server.commands().len(), 1, "{:?}", kit.server.commands());
        client.close().await;

        let client = kit.connect_with(kit.options().allow_admin(true)).await;
        client.cmd::<()>("FLUSHALL").await.unwrap();
        client.cmd::<()>("BLPOP q 5").await.unwrap_err();
        client.close().await;

        // A lazy client does not even connect for it.
        let accepted = kit.server.connections_accepted();
        let client = kit.lazy(kit.options());
        client.cmd::<()>("BLPOP q 5").await.unwrap_err();
        assert_eq!(kit.server.connections_accepted(), accepted);
        client.close().await;
    });
}

const INVALIDATE: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";

/// F-01: a push between two replies, cut at every byte, with and without a listener.
pub fn f01_push_between_replies<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        let first = format!("$1\r\n1\r\n{INVALIDATE}");
        for pieces in 1..=first.len() + 7 {
            kit.server.remove_rules();
            kit.server.on("GET").argument("a").act(Action::raw(first.as_str()));
            kit.server.on("GET").argument("b").act(Action::raw("$1\r\n2\r\n"));
            kit.server.all_connections().split(pieces);
            let mut listener = (pieces % 2 == 0).then(|| client.listen(8));
            let seen = client.pushes_seen();
            let other = client.clone();
            let b = spawn::<H, _>(async move { other.get::<i64, _>("b").await.unwrap() });
            assert_eq!(client.get::<i64, _>("a").await.unwrap(), 1);
            assert_eq!(b.result().await, 2);
            until::<H>("the push", || client.pushes_seen() == seen + 1).await;
            if let Some(listener) = &mut listener {
                let Some(Value::Push(parts)) = listener.next().await else { panic!("no push") };
                assert_eq!(parts[0].as_str(), Some("invalidate"));
                assert!(listener.try_next().is_none());
            }
        }
        client.close().await;
    });
}

/// F-01: a push while nothing is outstanding, one of an unknown kind, and the end of a listener.
pub fn f01_push_at_rest<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        let mut listener = client.listen(2);
        for _ in 0..3 {
            assert!(kit.server.push(1, b">1\r\n+novelty\r\n"));
        }
        until::<H>("the pushes", || client.pushes_seen() == 3).await;
        assert_eq!(listener.dropped(), 1);
        assert!(listener.next().await.is_some() && listener.try_next().is_some());
        let waiting = spawn::<H, _>(async move { listener.next().await });
        assert_eq!(client.incr("n").await.unwrap(), 1);
        client.close().await;
        assert!(waiting.result().await.is_none(), "it ends with the client");
        assert!(client.listen(1).next().await.is_none(), "nothing will come any more");
    });
}

/// F-01: a push on a connection that speaks RESP2 is a fault of the peer; the connection is replaced.
pub fn f01_push_in_resp2<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().protocol(Protocol::Resp2)).await;
        kit.server.on("GET").withhold();
        let other = client.clone();
        let call = spawn::<H, _>(async move { other.get::<Option<i64>, _>("k").await });
        kit.until("the call", |stats| stats.withheld == 1).await;
        kit.server.push(1, INVALIDATE.as_bytes());
        let error = call.result().await.unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{error:?}");
        assert_eq!(error.delivery(), Delivery::MaybeExecuted);
        kit.server.remove_rules();
        assert_eq!(client.get::<Option<i64>, _>("k").await.unwrap(), None);
        assert_eq!(kit.server.connections_accepted(), 2);
        client.close().await;
    });
}

/// F-05: unusual types arrive whole through the whole client, and the connection goes on.
pub fn f05_unusual_types<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        for (at, (reply, wanted)) in [
            (",inf\r\n", "Double(inf)"),
            (",-inf\r\n", "Double(-inf)"),
            (",nan\r\n", "Double(NaN)"),
            (",1.5e300\r\n", "Double(1.5e300)"),
            (
                "(3492890328409238509324850943850943825024385\r\n",
                "3492890328409238509324850943850943825024385",
            ),
            ("=15\r\ntxt:Some string\r\n", "Some string"),
            ("$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", "Hello"),
            ("*?\r\n:1\r\n:2\r\n.\r\n", "[Integer(1), Integer(2)]"),
            ("%?\r\n+a\r\n:1\r\n.\r\n", "Integer(1)"),
            ("~?\r\n:1\r\n.\r\n", "Integer(1)"),
            ("#t\r\n", "true"),
            ("_\r\n", "Null"),
        ]
        .into_iter()
        .enumerate()
        {
            kit.server.all_connections().split(at % 5 + 1);
            let rule = kit.server.on("GET").reply_raw(reply);
            let value: Value = client.get("k").await.unwrap();
            kit.server.remove(rule);
            let text = match value.as_str() {
                Some(text) => text.to_owned(),
                None => format!("{value:?}"),
            };
            assert!(text.contains(wanted) || text.contains(&wanted.replace("e300", "")), "{reply:?}: {text}");
            assert_eq!(client.incr("n").await.unwrap(), at as i64 + 1);
        }
        kit.server.on("GET").reply_raw("!21\r\nSYNTAX invalid syntax\r\n");
        let error = client.get::<Value, _>("k").await.unwrap_err();
        assert!(matches!(&error, Error::Server(e) if e.code() == "SYNTAX"), "{error:?}");
        client.close().await;
    });
}

/// A reply that does not fit the type is told by name, and costs nothing else.
pub fn conversions_fail_alone<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        client.set("k", "word").await.unwrap();
        let error = client.get::<i64, _>("k").await.unwrap_err();
        assert!(matches!(error, Error::Conversion(_)), "{error:?}");
        assert_eq!((error.command(), error.delivery()), (Some("GET"), Delivery::Answered));
        assert!(!error.to_string().contains("word"), "{error}");
        let error = client.incr("k").await.unwrap_err();
        assert!(matches!(&error, Error::Server(e) if e.code() == "ERR"), "{error:?}");
        assert_eq!(client.get::<String, _>("k").await.unwrap(), "word");
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;
    });
}

/// A call that was made and never polled costs nothing, and polled after its end it panics.
pub fn calls_are_lazy<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        kit.server.take_commands();
        drop(client.incr("n"));
        drop(client.cmd::<()>("SET").arg(("k", 1)));
        let mut call = client.incr("n");
        assert!(poll_once(&mut call).is_pending());
        assert_eq!(call.await.unwrap(), 1);
        assert_eq!(kit.server.commands().len(), 1);
        client.close().await;
    });
}
