//! Real servers behind the test kit's proxy: a network that splits, delays, is slow, or lets nobody in.

use crate::failing::{Tally, load};
use crate::host::{Host, spawn};
use crate::kit::{Rng, count_from_env, pause, poll_once, until};
use crate::live::{Live, everyday, inside, plain};
use respiral::error::Stage;
use respiral::{Blob, Client, ConnectOptions, Delivery, EngineKind, Error, Protocol};
use respiral_testkit::{Accept, Hangup, Proxy};
use servers::{Kind, LiveServerBuilder};
use std::rc::Rc;
use std::time::Duration;

/// A real server, and the bad network before it.
pub(crate) struct Far {
    pub(crate) live: Live,
    pub(crate) proxy: Proxy,
}

impl Far {
    pub(crate) fn options(&self) -> ConnectOptions {
        self.live.at(&self.proxy.url())
    }

    pub(crate) async fn connect<H: Host>(&self, options: ConnectOptions) -> Client {
        self.live.connect::<H>(options).await
    }

    /// A counter, asked of the server itself; 0 when there is none.
    pub(crate) fn counter(&self, key: &str) -> i64 {
        self.live.server.cli(&["GET", key]).parse().unwrap_or(0)
    }

    /// Waits until so many connections have been made since the start.
    pub(crate) async fn accepted<H: Host>(&self, count: u64) {
        until::<H>("connections", || self.proxy.connections_accepted() >= count).await;
    }
}

pub(crate) fn through<H: Host>(builder: LiveServerBuilder, engine: EngineKind, test: impl AsyncFnOnce(Far)) {
    inside::<H>(builder, engine, async |live| {
        let proxy = Proxy::start(live.server.addr()).unwrap();
        test(Far { live, proxy }).await;
    });
}

/// Each byte is a segment of its own, both ways.
pub fn every_byte_split<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        far.proxy.new_connections().split(1);
        for protocol in [Protocol::Auto, Protocol::Resp2] {
            let client = far.connect::<H>(far.options().protocol(protocol).allow_admin(true)).await;
            everyday(&client).await;
            let value: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
            client.set("big", &value).await.unwrap();
            assert!(client.get::<Vec<u8>, _>("big").await.unwrap() == value);
            client.close().await;
        }
        assert_eq!(far.proxy.connections_accepted(), 2);
    });
}

/// A far server: everyone shares the way. (One after the other, these calls would take longer than a test may.)
pub fn latency_with_pipelining<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        far.proxy.new_connections().delay(Duration::from_millis(15));
        let client = far.connect::<H>(far.options()).await;
        let tasks: Vec<_> = (0..1000)
            .map(|caller| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    let key = format!("k:{caller}");
                    for round in 0..3 {
                        client.set(&key, caller * 10 + round).await.unwrap();
                        assert_eq!(client.get::<i32, _>(&key).await.unwrap(), caller * 10 + round);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        assert_eq!(far.proxy.connections_accepted(), 1);
        client.close().await;
    });
}

/// F-07: callers go away, or their deadlines pass, while replies are late; nobody gets another's.
pub fn f07_callers_gone_before_late_replies<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = far.connect::<H>(far.options()).await;
        for key in 0..10 {
            client.set(format!("secret:{key}"), format!("of {key}")).await.unwrap();
            client.set(format!("k:{key}"), key).await.unwrap();
        }
        let mut rng = Rng::new(count_from_env("SEED", 7));
        let mut timeouts = 0;
        for round in 0..60 {
            let late = rng.below(4_000);
            far.proxy
                .all_connections()
                .to_client()
                .delay(Duration::from_micros(late))
                .split(1 + rng.below(9) as usize);
            let (key, other) = (rng.below(10), rng.below(10));
            let mut dropped: Vec<_> =
                (0..rng.below(6)).map(|_| client.get::<String, _>(format!("secret:{key}"))).collect();
            dropped.iter_mut().for_each(|call| assert!(poll_once(call).is_pending()));
            if round % 2 == 0 {
                pause::<H>(Duration::from_micros(rng.below(4_000))).await;
            }
            drop(dropped);
            let short = Duration::from_millis(1 + rng.below(3));
            match client.get::<String, _>(format!("secret:{other}")).timeout(short).await {
                Ok(secret) => assert_eq!(secret, format!("of {other}")),
                Err(error) => {
                    assert!(matches!(error, Error::Timeout(_)), "{error:?}");
                    timeouts += 1;
                }
            }
            assert_eq!(client.get::<u64, _>(format!("k:{key}")).await.unwrap(), key);
        }
        assert!(timeouts > 0, "no deadline has passed");
        assert_eq!(far.proxy.connections_accepted(), 1);
        client.close().await;
    });
}

/// F-09: replies to set-up that come after its deadline, or just before; none reaches a call.
pub fn f09_late_set_up_replies<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        far.live.server.cli(&["MSET", "a", "1", "b", "2"]);
        let options = far.options().client_name("late").command_timeout(Some(Duration::from_millis(60)));
        far.proxy.all_connections().to_client().delay(Duration::from_millis(150));
        let client = Client::lazy_on(H::runtime(), options).unwrap();
        for _ in 0..3 {
            let error = client.get::<String, _>("a").await.unwrap_err();
            assert_eq!(error.delivery(), Delivery::NotExecuted, "{error:?}");
        }
        // Later and later, and earlier again: what is still on its way may meet the connection that works.
        for late in (0..=90).chain((0..90).rev()).step_by(15) {
            far.proxy.all_connections().to_client().delay(Duration::from_millis(late));
            for (key, value) in [("a", "1"), ("b", "2")] {
                match client.get::<String, _>(key).await {
                    Ok(found) => assert_eq!(found, value),
                    Err(error) => assert!(matches!(error, Error::Timeout(_)), "{error:?}"),
                }
            }
        }
        far.proxy.all_connections().heal();
        let (a, b) = (client.get::<String, _>("a").timeout(None), client.get::<String, _>("b").timeout(None));
        assert_eq!((a.await.unwrap().as_str(), b.await.unwrap().as_str()), ("1", "2"));
        client.close().await;
    });
}

/// F-19: a large reply and a large request at once, through little room and a slow relay that reads nothing while it has
/// something to write; a small one behind them.
pub fn f19_both_sides_write<H: Host>(kind: Kind, engine: EngineKind) {
    const LEN: usize = 8 << 20;
    through::<H>(plain(kind), engine, async |far| {
        let value: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        far.proxy.new_connections().socket_buffers(64 * 1024).rate(24 << 20);
        // (Only this way: the server's side is read while the client's bytes wait.)
        far.proxy.new_connections().to_server().read_only_when_written();
        let client = far.connect::<H>(far.options().command_timeout(None)).await;
        client.set("big", &value).await.unwrap();
        let (reader, writer, last) = (client.clone(), client.clone(), client.clone());
        let wanted = value.clone();
        let get = spawn::<H, _>(async move {
            let blob: Blob = reader.get("big").await.unwrap();
            assert!(blob == wanted[..]);
        });
        let set = spawn::<H, _>(async move { writer.set("big2", &value).await.unwrap() });
        let small = spawn::<H, _>(async move { last.incr("n").await.unwrap() });
        get.result().await;
        set.result().await;
        assert_eq!(small.result().await, 1);
        assert_eq!(client.cmd::<usize>("STRLEN").arg("big2").await.unwrap(), LEN);
        assert_eq!(far.proxy.connections_accepted(), 1);
        client.close().await;
    });
}

/// F-19: the deadline comes before the end of the transfer, either way; no half frame is left for others.
pub fn f19_deadline_shorter_than_the_transfer<H: Host>(kind: Kind, engine: EngineKind) {
    const LEN: usize = 4 << 20;
    through::<H>(plain(kind), engine, async |far| {
        far.proxy.new_connections().socket_buffers(64 * 1024);
        let client = far.connect::<H>(far.options()).await;
        far.proxy.all_connections().rate(24 << 20);
        for round in 1..=2 {
            let short = Duration::from_millis(50);
            let error = client.set("big", vec![b'x'; LEN]).timeout(short).await.unwrap_err();
            let Error::Timeout(timeout) = &error else { panic!("{error:?}") };
            assert!(matches!(timeout.stage, Stage::Writing | Stage::AwaitingReply), "{error:?}");
            assert_eq!(error.delivery(), Delivery::MaybeExecuted);
            assert_eq!(client.incr("n").await.unwrap(), 2 * round - 1);
            // (It went on, and has run.)
            let error = client.get::<Blob, _>("big").timeout(short).await.unwrap_err();
            assert!(matches!(&error, Error::Timeout(e) if e.stage == Stage::AwaitingReply), "{error:?}");
            assert_eq!(client.incr("n").await.unwrap(), 2 * round);
        }
        assert_eq!(client.cmd::<usize>("STRLEN").arg("big").await.unwrap(), LEN);
        client.close().await;
    });
}

/// For a while nobody gets in: refused, never answered, or ended at once. Calls say so and have not run; nobody dials in
/// a loop; then the same client serves again.
pub fn no_way_in_for_a_while<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let limit = Some(Duration::from_millis(100));
        let options = far.options().connections(2).connect_timeout(Duration::from_secs(1));
        let client = far.connect::<H>(options.command_timeout(limit)).await;
        let tally = Rc::new(Tally::default());
        let tasks = load::<H>(&client, "n", 16, &tally);
        for accept in [
            Accept::Refuse,
            Accept::Backlog,
            Accept::Silent,
            Accept::HangUp(Hangup::Fin),
            Accept::HangUp(Hangup::Reset),
        ] {
            let done = tally.done.get();
            until::<H>("progress", || tally.done.get() > done + 200).await;
            far.proxy.accept(accept).unwrap();
            let accepted = far.proxy.connections_accepted();
            far.proxy.open_connections().reset();
            let not = tally.not.get();
            until::<H>("calls fail", || tally.not.get() > not + 64).await;
            let error = loop {
                match client.incr("n").await {
                    // What was on its way when the connections went.
                    Err(error) if error.delivery() == Delivery::MaybeExecuted => {
                        tally.maybe.set(tally.maybe.get() + 1);
                    }
                    outcome => break outcome.unwrap_err(),
                }
            };
            assert!(matches!(error, Error::Connection(_) | Error::Timeout(_)), "{accept:?}: {error:?}");
            assert_eq!(error.delivery(), Delivery::NotExecuted, "{accept:?}: {error:?}");
            // A failed attempt ends what waits for it, and the next calls cause the next; 16 callers share each.
            let (dialled, failed) =
                (far.proxy.connections_accepted() - accepted, (tally.not.get() - not) as u64);
            assert!(dialled <= 2 + failed, "{accept:?}: {dialled} dials for {failed} calls");
            far.proxy.accept(Accept::Serve).unwrap();
            far.proxy.open_connections().heal();
        }
        let done = tally.done.get();
        until::<H>("progress", || tally.done.get() > done + 200).await;
        tally.stop.set(true);
        for task in tasks {
            task.result().await;
        }
        tally.check(far.counter("n"));
        client.close().await;
    });
}

/// Connects that the kernel takes and nobody serves end by `connect_timeout`, also where commands have no deadline.
pub fn swallowed_connects_time_out<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let limit = Duration::from_millis(100);
        far.proxy.accept(Accept::Backlog).unwrap();
        let options = far.options().connect_timeout(limit).command_timeout(None);
        let error = Client::connect_on(H::runtime(), options.clone()).await.unwrap_err();
        let client = Client::lazy_on(H::runtime(), options).unwrap();
        for error in [error, client.incr("n").await.unwrap_err()] {
            let Error::Timeout(timeout) = error else { panic!("{error:?}") };
            assert_eq!((timeout.stage, timeout.budget), (Stage::Connecting, limit));
            assert_eq!(timeout.delivery, Delivery::NotExecuted);
        }
        far.proxy.accept(Accept::Serve).unwrap();
        assert_eq!(client.incr("n").timeout(Duration::from_secs(20)).await.unwrap(), 1);
        client.close().await;
        // Those that were given up are accepted now, and gone.
        until::<H>("nobody is left", || far.proxy.stats().connections_open == 0).await;
    });
}

/// The address leads to another server from one moment to the next, as after a failover behind a balancer.
pub fn another_server_at_the_same_address<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |mut far| {
        let client = far.connect::<H>(far.options().connections(2)).await;
        client.set("where", "first").await.unwrap();
        let second = plain(kind).start().unwrap();
        second.cli(&["SET", "where", "second"]);
        far.proxy.retarget(second.addr());
        assert_eq!(client.get::<String, _>("where").await.unwrap(), "first");
        far.live.server.kill().unwrap();
        far.accepted::<H>(4).await;
        assert_eq!(client.get::<String, _>("where").await.unwrap(), "second");
        client.close().await;
    });
}
