//! H7: a forked child has copies of its parent's clients, runtime and all. What it does to them must not reach the
//! parent, whose ring, sockets and registrations they share.

use crate::host::{Host, spawn};
use crate::kit::{Kit, list_descriptors, poll_once, until};
use fork::{Fork, fork, waitpid_nohang};
use respiral::error::ApiMisuse;
use respiral::{Client, ConnectOptions, Delivery, EngineKind, EngineOptions, Error};
use std::cell::Cell;
use std::future::Future;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::Command;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Runs `test` in a child, while the parent's tasks go on.
async fn in_child<H: Host>(test: impl FnOnce()) {
    match fork().unwrap() {
        Fork::Child => {
            let result = catch_unwind(AssertUnwindSafe(test));
            if let Err(panic) = &result {
                let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
                let text = text.or(panic.downcast_ref().cloned());
                let _ = writeln!(std::io::stderr(), "in the child: {text:?}");
            }
            // An end that runs nothing of the parent's: no destructors, no buffers that it will write itself.
            let error = Command::new(if result.is_ok() { "true" } else { "false" }).exec();
            panic!("{error}");
        }
        Fork::Parent(child) => {
            let mut status = None;
            until::<H>("the child ends", || {
                status = status.or(waitpid_nohang(child).unwrap());
                status.is_some()
            })
            .await;
            assert_eq!(status, Some(0), "the child failed; its message is on stderr");
        }
    }
}

fn forked<T>(polled: Poll<respiral::Result<T>>) -> Delivery {
    match polled {
        Poll::Ready(Err(Error::ApiMisuse(ApiMisuse::Forked(delivery)))) => delivery,
        Poll::Ready(Err(error)) => panic!("{error:?}"),
        Poll::Ready(Ok(_)) => panic!("it worked"),
        Poll::Pending => panic!("pending"),
    }
}

fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

fn rings_and_sockets() -> (usize, usize) {
    let all = list_descriptors();
    let count = |word| all.iter().filter(|name| name.contains(word)).count();
    (count("io_uring"), count("socket:"))
}

/// Children use what they inherited, close it and drop it while the parent is busy; nothing of that is seen there. A
/// client of their own works.
pub fn h07_used_and_dropped_in_a_child<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    kit.server.record(false);
    let mut host = H::start();
    H::block_on(&mut host, async {
        let client = kit.connect_with(kit.options().connections(2)).await;
        let idle = kit.connect().await;
        let (placed, mut driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let (busy, count) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (client, busy, count) = (client.clone(), busy.clone(), count.clone());
                spawn::<H, _>(async move {
                    while busy.get() {
                        client.incr("n").await.unwrap();
                        count.set(count.get() + 1);
                    }
                })
            })
            .collect();
        let more = async || {
            let before = count.get();
            until::<H>("the parent's calls go on", || count.get() >= before + 500).await;
        };

        more().await;
        let (mut begun, mut unsent) = (client.incr("n"), client.incr("n"));
        assert!(poll_once(&mut begun).is_pending());
        let mut listener = client.listen(1);
        let mut connecting = Box::pin(placed.connected());
        assert!(poll_once(&mut connecting).is_pending());
        in_child::<H>(|| {
            assert_eq!(ready(listener.next()), None);
            for _ in 0..100 {
                assert_eq!(forked(poll_once(&mut client.incr("n"))), Delivery::NotExecuted);
            }
            assert_eq!(forked(poll_once(&mut unsent)), Delivery::NotExecuted);
            assert_eq!(forked(poll_once(&mut begun)), Delivery::MaybeExecuted);
            assert_eq!(forked(poll_once(&mut connecting)), Delivery::NotExecuted);
            assert_eq!(forked(Poll::Ready(ready(idle.connected()))), Delivery::NotExecuted);
            assert!(!client.is_connected());
            assert_eq!(ready(client.listen(1).next()), None);
            std::thread::sleep(Duration::from_millis(20));
            ready(client.close());
            ready(placed.close());
            assert!(poll_once(&mut driver).is_ready());
        })
        .await;
        more().await;
        begun.await.unwrap();
        unsent.await.unwrap();

        // Dropped without being used: a call, the last handle, the driver.
        let mut begun = client.incr("n");
        assert!(poll_once(&mut begun).is_pending());
        let (begun, idle, driver) = (Cell::new(Some(begun)), Cell::new(Some(idle)), Cell::new(Some(driver)));
        in_child::<H>(|| {
            let before = rings_and_sockets();
            drop((begun.take(), idle.take(), driver.take()));
            ready(client.close());
            let after = rings_and_sockets();
            let rings = if engine == EngineKind::Uring { 3 } else { 0 };
            assert_eq!((before.0 - after.0, before.1 - after.1), (rings, 3), "{:?}", list_descriptors());
        })
        .await;
        more().await;
        begun.take().unwrap().await.unwrap();
        assert_eq!(idle.take().unwrap().incr("idle").await.unwrap(), 1);
        let driver = spawn::<H, _>(driver.take().unwrap());
        connecting.as_mut().await.unwrap();
        assert_eq!(placed.incr("placed").await.unwrap(), 1);
        placed.close().await;
        driver.result().await;

        // What the child makes itself is its own.
        in_child::<H>(|| {
            let port = kit.server.addr().port();
            let own = std::thread::spawn(move || {
                let mut host = H::start();
                H::block_on(&mut host, async {
                    let options =
                        ConnectOptions::tcp("127.0.0.1", port).engine(EngineOptions::new().kind(engine));
                    let client = Client::connect_on(H::runtime(), options).await.unwrap();
                    assert_eq!(client.incr("child").await.unwrap(), 1);
                    client.close().await;
                });
            });
            own.join().unwrap();
        })
        .await;
        more().await;
        busy.set(false);
        for task in tasks {
            task.result().await;
        }
        assert_eq!(client.incr("n").await.unwrap(), count.get() + 4, "each call once, and each answered");
        assert_eq!(kit.server.connections_accepted(), 2 + 1 + 1 + 1, "no connection was lost");
        client.close().await;
    });
}
