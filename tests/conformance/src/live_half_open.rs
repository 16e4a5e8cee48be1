//! Real servers whose connections die without a word (F-15), or all at once (F-17).

use crate::failing::{Tally, load};
use crate::host::{Host, spawn};
use crate::kit::{pause, until};
use crate::live::plain;
use crate::live_faults::{Far, through};
use respiral::error::{ConnectionFailure, Stage};
use respiral::{Client, Delivery, EngineKind, Error};
use respiral_testkit::{Connections, Hangup, Proxy};
use servers::Kind;
use std::rc::Rc;
use std::time::Duration;

/// A call's own deadline, and the time after which a silent connection is given up.
const SHORT: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(200);

type Fault = for<'a> fn(Connections<'a, Proxy>) -> Connections<'a, Proxy>;

/// Ways to fall silent without an end of stream or a reset, and whether commands still reach the server.
const SILENCES: [(&str, Fault, bool); 4] = [
    ("towards the server", |connections| connections.to_server().stall(), false),
    ("towards the client", |connections| connections.to_client().stall(), true),
    ("both ways", |connections| connections.stall(), false),
    ("black hole", |connections| connections.black_hole(), false),
];

fn is_stalled(error: &Error) -> bool {
    matches!(error, Error::Connection(e) if matches!(e.failure, ConnectionFailure::Stalled(_)))
}

async fn impatient<H: Host>(far: &Far, connections: u32) -> Client {
    // The silence ends a call long before its own deadline.
    let options = far.options().connections(connections).command_timeout(Duration::from_secs(20));
    let options = options.idle_read_timeout(IDLE);
    far.connect::<H>(options).await
}

/// F-15, form A (a relay that stops, without FIN or RST), one direction or both: calls end by their deadlines, the
/// connection by `idle_read_timeout`; all tell that they may have run, as some have; the next call has a new connection.
pub fn f15_half_open<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 1).await;
        for (name, fall_silent, still_runs) in SILENCES {
            assert_eq!(client.incr(name).await.unwrap(), 1);
            let connection = far.proxy.connections_accepted();
            fall_silent(far.proxy.open_connections());
            let (patient, key) = (client.clone(), name);
            let patient = spawn::<H, _>(async move { patient.incr(key).await.unwrap_err() });
            let error = client.incr(name).timeout(SHORT).await.unwrap_err();
            assert!(
                matches!(&error, Error::Timeout(e) if e.stage == Stage::AwaitingReply && e.budget == SHORT),
                "{name}: {error:?}"
            );
            assert_eq!(error.delivery(), Delivery::MaybeExecuted, "{name}");
            let error = patient.result().await;
            assert!(is_stalled(&error), "{name}: {error:?}");
            assert_eq!(error.delivery(), Delivery::MaybeExecuted, "{name}");
            assert!(error.to_string().contains(&far.proxy.addr().to_string()), "{name}: {error}");

            assert_eq!(client.incr(name).await.unwrap(), if still_runs { 4 } else { 2 }, "{name}");
            assert_eq!(far.proxy.connections_accepted(), connection + 1, "{name}");
            // What was held up arrives now, and runs: it was not told otherwise.
            far.proxy.connection(connection).resume();
            let late = if name == "black hole" { 2 } else { 4 };
            until::<H>("the late ones run", || far.counter(name) == late).await;
        }
        client.close().await;
    });
}

/// F-15 under load: sent commands fail as maybe executed, unsent ones run on the new connection; nothing runs twice.
pub fn f15_half_open_under_load<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 2).await;
        let tally = Rc::new(Tally::default());
        let tasks = load::<H>(&client, "n", 32, &tally);
        for (name, fall_silent, _) in SILENCES {
            let done = tally.done.get();
            until::<H>("progress", || tally.done.get() > done + 200).await;
            let (accepted, maybe) = (far.proxy.connections_accepted(), tally.maybe.get());
            fall_silent(far.proxy.open_connections());
            far.accepted::<H>(accepted + 2).await;
            let lost = tally.maybe.get() - maybe;
            // (A caller may meet both, one after the other.)
            assert!((1..=2 * 32).contains(&lost), "{name}: {lost} calls were on their way");
            for old in 1..=accepted {
                far.proxy.connection(old).resume();
            }
        }
        let done = tally.done.get();
        until::<H>("progress", || tally.done.get() > done + 200).await;
        tally.stop.set(true);
        for task in tasks {
            task.result().await;
        }
        assert_eq!(tally.not.get(), 0, "{:?}", tally.errors.borrow());
        tally.check(far.counter("n"));
        client.close().await;
    });
}

/// F-15, idle: the connection falls silent while nobody speaks; the first call finds out, the second is served.
pub fn f15_found_at_the_first_call<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 1).await;
        client.set("k", "v").await.unwrap();
        far.proxy.open_connections().stall();
        // Owing nothing, it may be as silent as it likes.
        pause::<H>(2 * IDLE).await;
        assert_eq!(far.proxy.connections_accepted(), 1);
        let error = client.get::<String, _>("k").await.unwrap_err();
        assert!(is_stalled(&error), "{error:?}");
        assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");
        assert_eq!(far.proxy.connections_accepted(), 2);
        client.close().await;
    });
}

/// F-15, a large write: the kernel took a part of it, so it has not run; what is queued behind goes to the new connection.
pub fn f15_large_write<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 1).await;
        assert_eq!(client.incr("n").await.unwrap(), 1);
        far.proxy.open_connections().to_server().stall();
        let writer = client.clone();
        let large = spawn::<H, _>(async move { writer.set("big", vec![b'x'; 32 << 20]).await.unwrap_err() });
        pause::<H>(Duration::from_millis(5)).await;
        assert_eq!(client.incr("n").await.unwrap(), 2);
        let error = large.result().await;
        assert!(is_stalled(&error), "{error:?}");
        assert_eq!(error.delivery(), Delivery::NotExecuted);
        far.proxy.open_connections().resume();
        until::<H>("the old one is gone", || far.live.server.connected_clients() == 1).await;
        assert_eq!(far.live.server.cli(&["EXISTS", "big"]), "0");
        client.close().await;
    });
}

/// The results of so many `GET k` in parallel.
pub(crate) async fn get_in_parallel<H: Host>(client: &Client, calls: usize) -> Vec<respiral::Result<String>> {
    let tasks: Vec<_> = (0..calls)
        .map(|_| {
            let client = client.clone();
            spawn::<H, _>(async move { client.get::<String, _>("k").await })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.result().await);
    }
    results
}

/// F-17: eight idle connections are ended at once; they are replaced without a call, which meets none of them.
pub fn f17_idle_connections_lost_at_once<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 8).await;
        client.set("k", "v").await.unwrap();
        for (round, how) in (1..).zip([Hangup::Fin, Hangup::Reset]) {
            far.proxy.open_connections().hang_up(how);
            far.accepted::<H>(8 + 8 * round).await;
            assert_eq!(client.get::<String, _>("k").await.unwrap(), "v");
            for result in get_in_parallel::<H>(&client, 16).await {
                assert_eq!(result.unwrap(), "v");
            }
            assert_eq!(far.proxy.connections_accepted(), 8 + 8 * round, "one dial for each");
        }
        client.close().await;
    });
}

/// F-17: half of them fall silent, the others are ended. The silent ones are found by the calls that meet them, each once.
pub fn f17_half_of_them_silent<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 8).await;
        client.set("k", "v").await.unwrap();
        for number in 1..=8 {
            let connection = far.proxy.connection(number);
            if number % 2 == 0 {
                connection.stall()
            } else {
                connection.reset()
            };
        }
        far.accepted::<H>(12).await;
        let results = get_in_parallel::<H>(&client, 16).await;
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        // (Four at least, as calls go where the least is in flight; more while the new ones are set up.)
        assert!((4..=16).contains(&failed.len()), "{results:?}");
        for error in failed {
            assert!(is_stalled(error), "{error:?}");
            assert_eq!(error.delivery(), Delivery::MaybeExecuted);
        }
        far.accepted::<H>(16).await;
        for result in get_in_parallel::<H>(&client, 16).await {
            assert_eq!(result.unwrap(), "v");
        }
        assert_eq!(far.proxy.connections_accepted(), 16);
        client.close().await;
    });
}

/// F-17: the ends arrive in the same turn as the calls.
pub fn f17_lost_in_the_turn_of_the_write<H: Host>(kind: Kind, engine: EngineKind) {
    through::<H>(plain(kind), engine, async |far| {
        let client = impatient::<H>(&far, 8).await;
        let tally = Rc::new(Tally::default());
        for round in 0..12_u64 {
            let how = if round % 2 == 0 { Hangup::Fin } else { Hangup::Reset };
            let tasks: Vec<_> = (0..16)
                .map(|_| {
                    let (client, tally) = (client.clone(), tally.clone());
                    spawn::<H, _>(async move { tally.note(&client.incr("n").await) })
                })
                .collect();
            // Before they are polled, or after.
            if round % 3 > 0 {
                pause::<H>(Duration::from_micros(20 * round)).await;
            }
            far.proxy.open_connections().hang_up(how);
            for task in tasks {
                task.result().await;
            }
            // It serves again at once.
            far.accepted::<H>(16 + 8 * round).await;
            tally.note(&Ok(client.incr("n").await.unwrap()));
        }
        assert_eq!(tally.not.get(), 0, "{:?}", tally.errors.borrow());
        tally.check(far.counter("n"));
        client.close().await;
    });
}
