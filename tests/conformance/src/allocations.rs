//! No allocation per command in steady state, on the thread of the client.

use crate::host::{Host, spawn};
use crate::kit::{count_from_env, inside};
use respiral::{Blob, Client, EngineKind};
use respiral_testkit::alloc_count::{self, Counts};
use std::cell::Cell;
use std::future::Future;
use std::hint::black_box;
use std::rc::Rc;

/// How many commands each measurement counts.
fn operations(callers: u64) -> u64 {
    // A lone caller pays a round trip per command; `ALLOCATION_OPS` makes both as long as one likes.
    count_from_env("ALLOCATION_OPS", if callers == 1 { 4000 } else { 100_000 })
}

/// Runs `callers` tasks that send one command after the other; counts between the warm-up and the end.
async fn measure<H: Host, F: Future<Output = ()>>(
    client: &Client,
    callers: u64,
    command: impl Fn(&Client) -> F + Clone + 'static,
) {
    let (warm_up, total) = (operations(callers) / 4, operations(callers));
    let done = Rc::new(Cell::new(0_u64));
    let [before, after] = [(); 2].map(|()| Rc::new(Cell::new(Counts::default())));
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (client, command, done) = (client.clone(), command.clone(), done.clone());
            let (before, after) = (before.clone(), after.clone());
            spawn::<H, _>(async move {
                while done.get() < warm_up + total + callers {
                    done.set(done.get() + 1);
                    command(&client).await;
                    if done.get() == warm_up {
                        before.set(alloc_count::snapshot());
                    } else if done.get() == warm_up + total {
                        after.set(alloc_count::snapshot());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.result().await;
    }
    assert!(before.get().allocations > 0 && after.get().allocations > 0, "nothing was measured");
    let counts = after.get() - before.get();
    assert_eq!(counts.allocations, 0, "{total} commands of {callers} callers: {counts:?}");
}

fn suite<H: Host>(engine: EngineKind, callers: u64) {
    let (counts, boxed) = alloc_count::measure_with(|| black_box(Box::new(1)));
    assert_eq!(counts.allocations, 1, "the test binary needs the counting allocator");
    drop(boxed);
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect().await;
        client.set("number", 42).await.unwrap();
        client.set("value", vec![b'v'; 64]).await.unwrap();
        measure::<H, _>(&client, callers, |client| {
            let call = client.get::<Blob, _>("value");
            async { assert_eq!(call.await.unwrap().as_slice().map(<[u8]>::len), Some(64)) }
        })
        .await;
        measure::<H, _>(&client, callers, |client| {
            let call = client.get::<i64, _>("number");
            async { assert_eq!(call.await.unwrap(), 42) }
        })
        .await;
        measure::<H, _>(&client, callers, |client| {
            let call = client.set("key", "a value of some length");
            async { call.await.unwrap() }
        })
        .await;
        measure::<H, _>(&client, callers, |client| {
            let call = client.incr("n");
            async { assert!(call.await.unwrap() > 0) }
        })
        .await;
        client.close().await;
    });
}

/// One caller.
pub fn none_for_one_caller<H: Host>(engine: EngineKind) {
    suite::<H>(engine, 1);
}

/// Sixty-four callers.
pub fn none_for_many_callers<H: Host>(engine: EngineKind) {
    suite::<H>(engine, 64);
}
