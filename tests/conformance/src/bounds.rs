//! What is bounded whatever happens: threads, memory, and what thousands of connections do to each other.

use crate::host::{Host, spawn};
use crate::kit::{Kit, count_from_env, inside, inside_with, pause, poll_once};
use crate::sharing::write_both_ways;
use respiral::{Blob, Delivery, EngineKind};
use respiral_testkit::{Server, alloc_count};
use std::time::Duration;

/// Names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let mut names: Vec<_> = tasks.flatten().filter_map(name).collect();
    names.sort();
    names
}

/// H30: neither the client nor the kernel for it starts a thread, in a thousand connects, calls and closes. (But for
/// looking up host names; the address here is a number.)
pub fn h30_no_thread_is_started<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        kit.connect().await.close().await;
        let before = threads();
        for _ in 0..50 {
            let client = kit.connect_with(kit.options().connections(20)).await;
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let client = client.clone();
                    spawn::<H, _>(async move { client.incr("n").await.unwrap() })
                })
                .collect();
            for task in tasks {
                task.result().await;
            }
            // One of them in the middle of something.
            let mut pending = client.set("k", vec![7; 100_000]);
            assert!(poll_once(&mut pending).is_pending());
            client.close().await;
            let names = threads();
            // Of the kernel for a ring, and for looking up names.
            let started = |name: &String| name.starts_with("iou-") || name.starts_with("respiral-resolv");
            assert!(!names.iter().any(started), "{names:?}");
        }
        assert_eq!(kit.server.connections_accepted(), 1001);
        // The test runner may start its own, one per processor, a moment late.
        let runners = std::thread::available_parallelism().map_or(1, usize::from);
        let after = threads();
        assert!(after.len() <= before.len() + runners, "{after:?}");
    });
}

/// H32, F-19: the server writes before it reads on, the client writes as much, and callers hold all the replies that they
/// can.
pub fn h32_both_sides_write_while_all_is_held<H: Host>(engine: EngineKind) {
    const LEN: usize = 16 << 20;
    let server = Server::builder().socket_buffers(64 * 1024).start().unwrap();
    server.new_connections().read_only_when_written();
    server.execute(["SET".as_bytes(), b"big", &vec![b'x'; LEN]]);
    server.execute(["SET".as_bytes(), b"k", &vec![b'k'; 20_000]]);
    inside_with::<H>(Kit::with(engine, server), async |kit| {
        let options = kit.options().engine(kit.engine_options().buffer_count(8)).command_timeout(None);
        let client = kit.connect_with(options).await;
        let mut held: Vec<Blob> = Vec::new();
        for _ in 0..30 {
            held.push(client.get("k").await.unwrap());
        }
        write_both_ways::<H>(&client, LEN).await;
        assert!(
            held.iter().all(|blob| blob.len() == 20_000 && blob.chunks().flatten().all(|byte| *byte == b'k'))
        );
        client.close().await;
    });
}

/// H34, CONN-040: a server that does not read is offered a gibibyte; the client has the bytes of its limit, and of one
/// value more.
pub fn h34_memory_stays_at_the_quota<H: Host>(engine: EngineKind) {
    const LIMIT: i64 = 8 << 20;
    const LEN: i64 = 1 << 20;
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client =
            kit.connect_with(kit.options().max_queued_bytes(LIMIT as u64).command_timeout(None)).await;
        kit.server.open_connections().stall();
        let value = vec![7_u8; LEN as usize];
        let (own, before) = (alloc_count::snapshot(), alloc_count::total().bytes_live());
        alloc_count::reset_peak();
        let mut calls: Vec<_> = (0..1024).map(|_| client.set("k", &value)).collect();
        for _ in 0..5 {
            assert!(calls.iter_mut().all(|call| poll_once(call).is_pending()));
            pause::<H>(Duration::from_millis(5)).await;
        }
        let peak = alloc_count::peak() - before;
        assert!((LIMIT..LIMIT + 2 * LEN).contains(&peak), "{peak} bytes");
        // The callers leave; what was on its way is all that goes out, and its memory comes back.
        drop(calls);
        kit.server.open_connections().resume();
        client.incr("n").await.unwrap();
        assert!(kit.server.stats().bytes_received < (LIMIT + 2 * LEN) as u64);
        client.close().await;
        let left = (alloc_count::snapshot() - own).bytes_live();
        // A thousand places of callers are kept for others to come; of the values nothing.
        assert!(left < LEN, "{left} bytes are left");
    });
}

/// H40: a server with thousands of connections of one client restarts: all are back. `CONNECTIONS` asks for others, two
/// descriptors each.
pub fn h40_thousands_come_back<H: Host>(engine: EngineKind) {
    let count = count_from_env("CONNECTIONS", 1000);
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let options = kit.options().connections(count as u32).max_inflight_commands(1);
        let client = kit.connect_with(options).await;
        assert_eq!(kit.server.stats().connections_open as u64, count);
        for calls in [1, 2] {
            // Each has a call when its server goes.
            kit.server.on("INCR").withhold();
            let tasks: Vec<_> = (0..count)
                .map(|_| {
                    let client = client.clone();
                    spawn::<H, _>(async move { client.incr("n").await.map_err(|error| error.delivery()) })
                })
                .collect();
            kit.until("all have a call", |stats| stats.withheld as u64 == count).await;
            kit.server.remove_rules();
            kit.server.restart().unwrap();
            for task in tasks {
                assert_eq!(task.result().await, Err(Delivery::MaybeExecuted));
            }
            client.connected().await.unwrap();
            let stats = kit.server.stats();
            assert_eq!(
                (stats.connections_open as u64, stats.connections_accepted),
                (count, (calls + 1) * count)
            );
        }
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.incr("n").await.unwrap() })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
}
