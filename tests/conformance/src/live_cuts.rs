//! Real servers whose connections are cut at a chosen byte, or deliver a wrong one.

use crate::failing::{Tally, load};
use crate::host::{Host, spawn};
use crate::kit::until;
use crate::live::plain;
use crate::live_faults::through;
use crate::live_half_open::get_in_parallel;
use respiral::error::ConnectionFailure;
use respiral::{Blob, Delivery, EngineKind, Error, Protocol};
use respiral_testkit::{Corrupt, Hangup};
use servers::Kind;
use std::rc::Rc;
use std::time::Duration;

const HANGUPS: [Hangup; 2] = [Hangup::Fin, Hangup::Reset];

/// Each byte of a SET is once the last that reaches the server. Our kernel has taken all of it, so the call may have run;
/// the server ran none that it did not get whole, and none twice.
pub fn cut_towards_the_server<H: Host>(kind: Kind, engine: EngineKind) {
    const FRAME: &str = "*3\r\n$3\r\nSET\r\n$4\r\nk:00\r\n$1\r\nv\r\n";
    through::<H>(plain(kind), engine, async |far| {
        let client = far.connect::<H>(far.options()).await;
        for how in HANGUPS {
            for bytes in 1..=FRAME.len() {
                let key = format!("k:{bytes:02}");
                assert!(!client.cmd::<bool>("EXISTS").arg(&key).await.unwrap());
                let before = far.proxy.stats();
                far.proxy.open_connections().to_server().cut_after(bytes, how);
                let error = client.set(&key, "v").await.unwrap_err();
                assert!(error.is_connection(), "{bytes}: {error:?}");
                assert_eq!(error.delivery(), Delivery::MaybeExecuted, "{bytes}");
                assert_eq!(error.command(), Some("SET"));
                far.accepted::<H>(before.connections_accepted + 1).await;
                if bytes == FRAME.len() {
                    until::<H>("the whole one runs", || far.live.server.cli(&["GET", &key]) == "v").await;
                } else {
                    assert!(!client.cmd::<bool>("EXISTS").arg(&key).await.unwrap(), "{bytes}");
                }
            }
            client.cmd::<i64>("DEL").arg(format!("k:{}", FRAME.len())).await.unwrap();
        }
        client.close().await;
    });
}

/// Each byte of a reply is once the last that arrives: the call may have run, and has, once. The whole reply is the
/// caller's, although the connection ends with it.
pub fn cut_towards_the_client<H: Host>(kind: Kind, engine: EngineKind) {
    const REPLY: &str = ":10\r\n";
    through::<H>(plain(kind), engine, async |far| {
        let client = far.connect::<H>(far.options()).await;
        for how in HANGUPS {
            for bytes in 1..=REPLY.len() {
                client.set("n", 9).await.unwrap();
                let accepted = far.proxy.connections_accepted();
                far.proxy.open_connections().to_client().cut_after(bytes, how);
                match client.incr("n").await {
                    Ok(n) => assert_eq!((bytes, n), (REPLY.len(), 10)),
                    Err(error) => {
                        assert!(error.is_connection(), "{bytes}: {error:?}");
                        assert_eq!(error.delivery(), Delivery::MaybeExecuted, "{bytes}");
                        // A reset may overtake the bytes before it.
                        assert!(bytes < REPLY.len() || how == Hangup::Reset, "the reply was lost");
                    }
                }
                far.accepted::<H>(accepted + 1).await;
                assert_eq!(client.get::<i64, _>("n").await.unwrap(), 10, "{bytes}: it ran once");
            }
        }
        client.close().await;
    });
}

/// Large values, cut on their way: a command that our kernel took in part has not run, and what is queued behind it runs
/// on the next connection; a reply that came in part is nobody's.
pub fn large_values_cut<H: Host>(kind: Kind, engine: EngineKind) {
    const LEN: usize = 32 << 20;
    through::<H>(plain(kind), engine, async |far| {
        let client = far.connect::<H>(far.options()).await;
        for (round, how) in (1..).zip(HANGUPS) {
            let accepted = far.proxy.connections_accepted();
            far.proxy.open_connections().to_server().cut_after(1 << 20, how);
            let (writer, behind) = (client.clone(), client.clone());
            let large = spawn::<H, _>(async move { writer.set("big", vec![b'x'; LEN]).await.unwrap_err() });
            let behind = spawn::<H, _>(async move { behind.incr("n").await });
            let error = large.result().await;
            assert!(error.is_connection(), "{error:?}");
            assert_eq!(error.delivery(), Delivery::NotExecuted);
            assert_eq!(behind.result().await.unwrap(), round);
            assert_eq!(far.proxy.connections_accepted(), accepted + 1);
            assert!(!client.cmd::<bool>("EXISTS").arg("big").await.unwrap());
        }
        let value: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        client.set("big", &value).await.unwrap();
        for bytes in [9, 10, 1_000, 16_384, 100_000, 300_008, 300_009] {
            far.proxy.open_connections().to_client().cut_after(bytes, Hangup::Fin);
            let error = client.get::<Blob, _>("big").await.unwrap_err();
            assert!(error.is_connection(), "{bytes}: {error:?}");
            assert_eq!(error.delivery(), Delivery::MaybeExecuted);
            assert!(client.get::<Blob, _>("big").await.unwrap() == value[..]);
        }
        client.close().await;
    });
}

/// Cuts at any byte of either direction, under load.
pub fn cut_under_load<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = far.connect::<H>(far.options().connections(2)).await;
        let tally = Rc::new(Tally::default());
        let tasks = load::<H>(&client, "n", 64, &tally);
        for round in 0..24_usize {
            let (done, accepted) = (tally.done.get(), far.proxy.connections_accepted());
            until::<H>("progress", || tally.done.get() > done + 100).await;
            let open = far.proxy.open_connections();
            let way = if round % 2 == 0 { open.to_server() } else { open.to_client() };
            way.split(1 + round).cut_after(1 + 7 * round, HANGUPS[round / 2 % 2]);
            far.accepted::<H>(accepted + 2).await;
        }
        let done = tally.done.get();
        until::<H>("progress", || tally.done.get() > done + 100).await;
        tally.stop.set(true);
        for task in tasks {
            task.result().await;
        }
        assert!(tally.maybe.get() > 0, "the cuts met nothing");
        tally.check(far.counter("n"));
        client.close().await;
    });
}

/// A wrong byte in a reply: an error that says so and names the endpoint, for the call whose reply it is; those behind it
/// on the connection hear of it; the other connection does not.
pub fn corrupt_replies<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        // Without set-up: the wrong byte meets the reply to a call, and no other.
        let options = far.options().protocol(Protocol::Resp2).set_info(false).connections(2);
        let client = far.connect::<H>(options).await;
        client.set("k", "v").await.unwrap();
        // `$1\r\nv\r\n`: its type, its length, its line end, the line end behind the value.
        let wrong = [
            (0, Corrupt::Replace(b'?')),
            (0, Corrupt::Flip(0x80)),
            (1, Corrupt::Replace(b'x')),
            (2, Corrupt::Replace(b'\n')),
            (3, Corrupt::Flip(0x40)),
            (5, Corrupt::Replace(b'w')),
            (6, Corrupt::Replace(b'\r')),
        ];
        for (offset, corrupt) in wrong {
            let accepted = far.proxy.connections_accepted();
            let newest = far.proxy.connection(accepted).to_client();
            newest.delay(Duration::from_millis(5)).corrupt_after(offset, corrupt);
            let (mut wrong, mut behind) = (0, 0);
            // The newest connection may not be there for the client yet: then nothing has happened, and again.
            while wrong + behind == 0 {
                let mut served = 0;
                for result in get_in_parallel::<H>(&client, 8).await {
                    match result {
                        Ok(value) => served += usize::from(value == "v"),
                        Err(Error::Protocol(error)) => {
                            wrong += 1;
                            assert_eq!(error.endpoint.as_deref(), Some(&*far.proxy.addr().to_string()));
                            assert_eq!(error.command.as_deref(), Some("GET"));
                            assert_eq!(error.delivery, Delivery::MaybeExecuted);
                        }
                        Err(Error::Connection(error)) => {
                            behind += 1;
                            assert!(matches!(error.failure, ConnectionFailure::Protocol(_)), "{error:?}");
                            assert_eq!(error.delivery, Delivery::MaybeExecuted);
                        }
                        Err(error) => panic!("{offset} {corrupt:?}: {error:?}"),
                    }
                }
                assert_eq!(served + wrong + behind, 8, "a wrong value");
            }
            assert_eq!((wrong, behind), (1, 3), "{offset} {corrupt:?}");
            far.accepted::<H>(accepted + 1).await;
            assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");
            assert_eq!(far.proxy.connections_accepted(), accepted + 1, "only that one is lost");
        }
        client.close().await;
    });
}
