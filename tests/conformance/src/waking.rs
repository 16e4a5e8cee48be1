//! H15: wakers are user code. They re-enter the client, drop what it holds, and panic.

use crate::host::{Host, spawn};
use crate::kit::{Kit, expect_leak, inside, pause, poll_once, until};
use respiral::{Blob, Client, EngineKind};
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

thread_local! {
    /// What the wakers of a test do; they are `Send` themselves, so it cannot be inside of them.
    static ON_WAKE: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
    static ON_DROP: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct Acting {
    woken: AtomicBool,
}

impl Wake for Acting {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let acts = ON_WAKE.with(|acts| std::mem::take(&mut *acts.borrow_mut()));
        acts.into_iter().for_each(|act| act());
    }
}

struct ActingOnDrop;

impl Wake for ActingOnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for ActingOnDrop {
    fn drop(&mut self) {
        let acts = ON_DROP.with(|acts| std::mem::take(&mut *acts.borrow_mut()));
        acts.into_iter().for_each(|act| act());
    }
}

fn on_wake(act: impl FnOnce() + 'static) {
    ON_WAKE.with(|acts| acts.borrow_mut().push(Box::new(act)));
}

fn on_drop(act: impl FnOnce() + 'static) {
    ON_DROP.with(|acts| acts.borrow_mut().push(Box::new(act)));
}

fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A waker that makes calls, and one that drops calls and replies.
pub fn h15_wakers_reenter<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        client.set("big", vec![1_u8; 50_000]).await.unwrap();
        let kept: Blob = client.get("big").await.unwrap();
        let acting = Arc::new(Acting::default());
        let waker = Waker::from(acting.clone());
        let mut call = client.incr("n");
        let other = client.clone();
        on_wake(move || {
            let mut call = Box::pin(other.incr("n"));
            assert!(poll_once(&mut call).is_pending());
            assert!(other.is_connected());
            drop(other.listen(1));
            drop(kept);
            let mut left = Box::pin(other.incr("left"));
            assert!(poll_once(&mut left).is_pending());
            drop(left);
            std::mem::forget(call);
        });
        assert!(poll_with(&mut call, &waker).is_pending());
        until::<H>("it is woken", || acting.woken.load(Ordering::SeqCst)).await;
        assert_eq!(call.await.unwrap(), 1);
        assert_eq!(client.incr("n").await.unwrap(), 3);
        assert_eq!(kit.count("INCR left"), 0);
        client.close().await;
    });
}

/// A waker that drops the last handle.
pub fn h15_a_waker_drops_the_last_client<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        for closes in [false, true] {
            let client = kit.connect().await;
            let acting = Arc::new(Acting::default());
            let mut call = Box::pin(client.incr("n"));
            assert!(poll_with(&mut call, &Waker::from(acting.clone())).is_pending());
            on_wake(move || {
                if closes {
                    drop(client.close_on_drop());
                }
                drop(call);
                drop(client);
            });
            until::<H>("it is woken", || acting.woken.load(Ordering::SeqCst)).await;
            kit.until("the end of the stream", |stats| stats.connections_open == 0).await;
        }
    });
}

/// A waker whose drop uses the client: replaced, cancelled, and cleared at the end.
pub fn h15_dropped_wakers_reenter<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        kit.server.on("GET").withhold();
        let act = |client: &Client| {
            let client = client.clone();
            on_drop(move || {
                assert!(!format!("{client:?}").is_empty());
                let mut call = Box::pin(client.incr("n"));
                let _ = poll_once(&mut call);
            });
        };
        // Replaced.
        let mut call = client.get::<(), _>("k");
        act(&client);
        assert!(poll_with(&mut call, &Waker::from(Arc::new(ActingOnDrop))).is_pending());
        assert!(poll_once(&mut call).is_pending());
        assert!(ON_DROP.with(|acts| acts.borrow().is_empty()));
        // Cancelled.
        act(&client);
        assert!(poll_with(&mut call, &Waker::from(Arc::new(ActingOnDrop))).is_pending());
        drop(call);
        assert!(ON_DROP.with(|acts| acts.borrow().is_empty()));
        // Of one that waits for connections, and of a listener.
        let mut listener = client.listen(1);
        act(&client);
        {
            let waker = Waker::from(Arc::new(ActingOnDrop));
            assert!(listener.poll_next(&mut Context::from_waker(&waker)).is_pending());
        }
        assert!(listener.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(ON_DROP.with(|acts| acts.borrow().is_empty()));
        kit.server.stop().unwrap();
        until::<H>("the loss is seen", || !client.is_connected()).await;
        kit.server.restart().unwrap();
        kit.server.accept(respiral_testkit::Accept::Silent).unwrap();
        for _ in 0..3 {
            act(&client);
            let mut connected = std::pin::pin!(client.connected());
            let waker = Waker::from(Arc::new(ActingOnDrop));
            let _ = connected.as_mut().poll(&mut Context::from_waker(&waker));
        }
        // Cleared at the end.
        let mut call = client.get::<(), _>("k");
        act(&client);
        let _ = poll_with(&mut call, &Waker::from(Arc::new(ActingOnDrop)));
        client.close().await;
        until::<H>("all are dropped", || ON_DROP.with(|acts| acts.borrow().is_empty())).await;
    });
}

/// A waker that panics: the other callers of the turn are woken all the same, and nobody waits for ever.
pub fn h15_a_waker_panics<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let mut host = H::start();
    let acting = [(); 3].map(|()| Arc::new(Acting::default()));
    let client = H::block_on(&mut host, kit.connect());
    kit.server.on("INCR").withhold();
    let mut calls: Vec<_> = (0..3).map(|_| client.incr("n")).collect();
    for (call, acting) in calls.iter_mut().zip(&acting) {
        assert!(poll_with(call, &Waker::from(acting.clone())).is_pending());
    }
    H::block_on(&mut host, kit.until("all arrived", |stats| stats.withheld == 3));
    // Two of the three panic.
    on_wake(|| {
        on_wake(|| panic!("this second panic belongs to the test"));
        panic!("this panic belongs to the test");
    });
    kit.server.remove_rules();
    kit.server.release();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        H::block_on(
            &mut host,
            until::<H>("all are woken", || acting.iter().all(|acting| acting.woken.load(Ordering::SeqCst))),
        );
    }));
    assert!(acting.iter().all(|acting| acting.woken.load(Ordering::SeqCst)), "a caller was forgotten");
    // Replied to or closed: over in any case.
    for call in &mut calls {
        assert!(poll_once(call).is_ready(), "a call waits for ever");
    }
    let mut late = client.incr("n");
    if unwound.is_ok() {
        H::block_on(&mut host, async {
            let _ = late.timeout(Duration::from_secs(5)).await;
            client.close().await;
        });
        drop(host);
    } else {
        // The host let the panic through: the driver is over, and says so.
        expect_leak();
        assert!(poll_once(&mut late).is_ready(), "a call waits for ever");
        drop((late, calls, client));
        drop(catch_unwind(AssertUnwindSafe(|| drop(host))));
    }
    assert!(kit.server.wait_for(|stats| stats.connections_open == 0));
}

/// A call that is dropped inside the poll of another future, and calls that end each other.
pub fn h15_dropped_inside_anothers_poll<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        for round in 0..20 {
            let mut first = Box::pin(client.incr("a"));
            let mut second = Some(Box::pin(client.incr("b")));
            std::future::poll_fn(|cx| {
                if let Some(call) = &mut second {
                    let _ = call.as_mut().poll(cx);
                }
                let over = first.as_mut().poll(cx);
                if round % 2 == 0 || over.is_ready() {
                    second = None;
                }
                over
            })
            .await
            .unwrap();
        }
        // Tasks that drop what other tasks wait for.
        let bin = std::rc::Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..32)
            .map(|_| {
                let (client, bin) = (client.clone(), bin.clone());
                spawn::<H, _>(async move {
                    for _ in 0..50 {
                        let mut call = Box::pin(client.clone().incr("c"));
                        let _ = poll_once(&mut call);
                        bin.borrow_mut().push(call);
                        client.incr("d").await.unwrap();
                        let old = bin.borrow_mut().pop();
                        drop(old);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        assert_eq!(client.incr("d").await.unwrap(), 1601);
        pause::<H>(Duration::from_millis(1)).await;
        client.close().await;
    });
}
