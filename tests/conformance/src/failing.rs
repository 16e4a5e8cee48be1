//! Deadlines and losses: each error says the truth about its command, and the client goes on.

use crate::host::{Host, spawn};
use crate::kit::{inside, pause, until};
use respiral::error::Stage;
use respiral::{Client, Delivery, EngineKind, Error};
use respiral_testkit::{Accept, Hangup, Server};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(60);

fn timeout(error: &Error) -> (Stage, Delivery) {
    let Error::Timeout(timeout) = error else { panic!("{error:?}") };
    assert_eq!(timeout.delivery, error.delivery());
    (timeout.stage, timeout.delivery)
}

/// CONN-112: a deadline at each stage tells the stage, and whether the command may have run.
pub fn deadline_at_each_stage<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        // No connection yet.
        kit.server.accept(Accept::Silent).unwrap();
        let client = kit.lazy(kit.options().max_inflight_commands(3));
        let error = client.incr("early").timeout(SHORT).await.unwrap_err();
        assert_eq!(timeout(&error), (Stage::WaitingForCapacity, Delivery::NotExecuted));
        kit.server.accept(Accept::Serve).unwrap();
        kit.server.open_connections().resume();
        assert_eq!(client.incr("n").await.unwrap(), 1);
        assert_eq!(kit.count("INCR early"), 0);

        // The reply does not come.
        kit.server.on("INCR").argument("sent").withhold();
        let error = client.incr("sent").timeout(SHORT).await.unwrap_err();
        assert_eq!(timeout(&error), (Stage::AwaitingReply, Delivery::MaybeExecuted));
        assert_eq!(error.command(), Some("INCR"));
        kit.server.release();
        kit.server.remove_rules();
        assert_eq!(client.incr("n").await.unwrap(), 2);

        // The server takes nothing: partly sent, and behind it.
        kit.server.open_connections().stall();
        let (writer, queued) = (client.clone(), client.clone());
        let writing = spawn::<H, _>(async move {
            writer.set("big", vec![0_u8; 32 << 20]).timeout(4 * SHORT).await.unwrap_err()
        });
        pause::<H>(SHORT).await;
        let queued = spawn::<H, _>(async move { queued.incr("queued").timeout(SHORT).await.unwrap_err() });
        assert_eq!(timeout(&queued.result().await), (Stage::Buffered, Delivery::NotExecuted));
        assert_eq!(timeout(&writing.result().await), (Stage::Writing, Delivery::MaybeExecuted));
        kit.server.open_connections().resume();
        assert_eq!(client.incr("n").await.unwrap(), 3);
        assert_eq!(kit.count("INCR queued"), 0, "it was told not to have run");
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;
    });
}

/// CONN-031: the client's timeout, a call's own, and none.
pub fn default_timeout<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().command_timeout(Some(SHORT))).await;
        kit.server.on("INCR").withhold();
        let error = client.incr("n").await.unwrap_err();
        assert!(matches!(&error, Error::Timeout(e) if e.budget == SHORT), "{error:?}");
        let error = client.incr("n").timeout(2 * SHORT).await.unwrap_err();
        assert!(matches!(&error, Error::Timeout(e) if e.budget == 2 * SHORT), "{error:?}");
        let other = client.clone();
        let patient = spawn::<H, _>(async move { other.incr("n").timeout(None).await });
        pause::<H>(3 * SHORT).await;
        assert!(!patient.is_over());
        kit.server.remove_rules();
        kit.server.release();
        patient.result().await.unwrap();
        client.close().await;
    });
}

/// What a load of INCRs came to.
#[derive(Default)]
pub(crate) struct Tally {
    /// Answered.
    pub done: Cell<i64>,
    /// May have run.
    pub maybe: Cell<i64>,
    /// Proved not to have run.
    pub not: Cell<i64>,
    /// The last errors, for messages.
    pub errors: RefCell<Vec<String>>,
    /// Set to end the load.
    pub stop: Cell<bool>,
}

impl Tally {
    /// Takes the outcome of one INCR.
    pub fn note(&self, outcome: &respiral::Result<i64>) {
        let counter = match outcome {
            Ok(_) => &self.done,
            Err(error) => {
                let mut errors = self.errors.borrow_mut();
                let text = error.to_string();
                if errors.len() < 20 && !errors.contains(&text) {
                    errors.push(text);
                }
                match error.delivery() {
                    Delivery::MaybeExecuted => &self.maybe,
                    Delivery::NotExecuted => &self.not,
                    Delivery::Answered => panic!("{error:?}"),
                }
            }
        };
        counter.set(counter.get() + 1);
    }

    /// Whether a counter of the server fits.
    pub fn check(&self, sum: i64) {
        let bounds = self.done.get()..=self.done.get() + self.maybe.get();
        assert!(bounds.contains(&sum), "{sum} is not in {bounds:?}; {:?}", self.errors.borrow());
    }
}

/// Tasks that count up `key` until the tally says stop.
pub(crate) fn load<H: Host>(
    client: &Client,
    key: &str,
    callers: usize,
    tally: &Rc<Tally>,
) -> Vec<crate::Join<()>> {
    (0..callers)
        .map(|_| {
            let (client, key, tally) = (client.clone(), key.to_owned(), tally.clone());
            spawn::<H, _>(async move {
                while !tally.stop.get() {
                    let outcome = client.incr(&key).await;
                    tally.note(&outcome);
                    if outcome.is_err() {
                        // A service would back off, too.
                        pause::<H>(Duration::from_millis(1)).await;
                    }
                }
            })
        })
        .collect()
}

fn counter(server: &Server, key: &str) -> i64 {
    let reply = String::from_utf8(server.execute(["INCRBY", key, "0"])).unwrap();
    reply.trim_start_matches(':').trim_end().parse().unwrap()
}

/// Connections are lost under load, in every way: errors tell the truth, the same client goes on, and nothing that was
/// accepted is executed twice.
pub fn losses_under_load<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect_with(kit.options().connections(2)).await;
        let tally = Rc::new(Tally::default());
        let tasks = load::<H>(&client, "n", 64, &tally);
        for round in 0..24_usize {
            let (done, accepted) = (tally.done.get(), kit.server.connections_accepted());
            until::<H>("progress", || tally.done.get() > done + 200).await;
            match round % 6 {
                0 => drop(kit.server.open_connections().reset()),
                1 => drop(kit.server.open_connections().close()),
                2 => drop(kit.server.open_connections().cut_after(7 + round, Hangup::Reset)),
                3 => drop(kit.server.open_connections().cut_after(100 + round, Hangup::Fin)),
                4 => kit.server.restart().unwrap(),
                _ => {
                    kit.server.stop().unwrap();
                    let failed = tally.not.get();
                    until::<H>("calls fail", || tally.not.get() > failed).await;
                    kit.server.restart().unwrap();
                }
            }
            kit.until("a new connection", |stats| stats.connections_accepted > accepted).await;
        }
        let done = tally.done.get();
        until::<H>("progress", || tally.done.get() > done + 200).await;
        tally.stop.set(true);
        for task in tasks {
            task.result().await;
        }
        assert!(tally.maybe.get() > 0, "the losses met nothing");
        tally.check(counter(&kit.server, "n"));
        client.close().await;
    });
}

/// A command that the kernel took only in part is known not to have run.
pub fn a_cut_command_did_not_run<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        kit.server.open_connections().stall();
        let writer = client.clone();
        let big = spawn::<H, _>(async move { writer.set("big", vec![0_u8; 32 << 20]).await.unwrap_err() });
        pause::<H>(Duration::from_millis(20)).await;
        let other = client.clone();
        let behind = spawn::<H, _>(async move { other.incr("n").await });
        pause::<H>(Duration::from_millis(5)).await;
        kit.server.open_connections().reset();
        let error = big.result().await;
        assert!(error.is_connection(), "{error:?}");
        assert_eq!(error.delivery(), Delivery::NotExecuted);
        assert_eq!(error.command(), Some("SET"));
        // What no kernel had seen goes out on the replacement.
        assert_eq!(behind.result().await.unwrap(), 1);
        assert_eq!(kit.server.connections_accepted(), 2);
        client.close().await;
    });
}

/// A connection that is lost at rest is replaced at once; no call meets it.
pub fn lost_at_rest<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(3)).await;
        for round in 1..=5 {
            kit.server.open_connections().close();
            kit.until("three again", |stats| stats.connections_accepted == 3 + 3 * round).await;
            assert_eq!(client.incr("n").await.unwrap(), round as i64);
        }
        client.close().await;
    });
}

/// A peer that answers with nonsense costs its connection, and no other.
pub fn protocol_errors_cost_one_connection<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().connections(2)).await;
        for nonsense in ["?huh\r\n", "$-7\r\n", ":12x\r\n", "$99999999999\r\n"] {
            let rule = kit.server.on("GET").times(1).reply_raw(nonsense);
            let error = client.get::<(), _>("k").await.unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{nonsense:?}: {error:?}");
            assert_eq!(error.command(), Some("GET"));
            kit.server.remove(rule);
            client.incr("n").await.unwrap();
        }
        // F-03: nested without end.
        let rule = kit.server.on("GET").times(1).reply_raw("*1\r\n".repeat(100_000) + ":1\r\n");
        let error = client.get::<(), _>("k").await.unwrap_err();
        assert!(matches!(error, Error::Protocol(_)) && error.to_string().contains("dep"), "{error}");
        kit.server.remove(rule);
        client.incr("n").await.unwrap();
        // A reply that nothing asked for.
        kit.server.open_connections().push(b"+surplus\r\n");
        kit.until("replaced", |stats| stats.connections_accepted == 2 + 5 + 2).await;
        client.incr("n").await.unwrap();
        client.close().await;
    });
}
