//! A system that refuses io_uring: the test binary runs itself as a child under a seccomp filter, which then has to do
//! with epoll, warns once, and says why when io_uring is forced.

use crate::host::Host;
use crate::kit::Kit;
use respiral::engine::RunningEngine;
use respiral::{Client, ConnectOptions, EngineKind, EngineOptions, Error};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use std::fmt::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Tells the child that it is one.
const VARIABLE: &str = "RESPIRAL_CONFORMANCE_DENIED";
/// `io_uring_setup`, on every architecture that has it.
const IO_URING_SETUP: i64 = 425;
const EPERM: u32 = 1;
const DONE: &str = "the denied child is done";

/// Runs the test `name` of this binary (as libtest calls it) in a child that may not make rings.
///
/// # Panics
/// When the child fails.
pub fn run_child(name: &str) {
    let (_, name) = name.split_once("::").unwrap_or(("", name));
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(DONE), "{said}");
}

/// True in the child.
pub fn is_child() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Collects what is logged as a warning or worse.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("respiral")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Text(&mut text));
        self.0.lock().unwrap().push(text);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// From now on this thread, what it starts and what they execute may not make rings.
pub fn deny() {
    let filter = SeccompFilter::new(
        [(IO_URING_SETUP, vec![])].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

/// In the child: `smoke` passes on epoll with one warning, and forced io_uring fails with the same reason. `options` lead
/// to a server that is up already.
pub fn child<H: Host>(options: &ConnectOptions, smoke: impl AsyncFn(Client)) {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).unwrap();
    deny();
    let with = |kind| options.clone().engine(EngineOptions::new().kind(kind));
    let mut host = H::start();
    H::block_on(&mut host, async {
        // The second client warns no more.
        for _ in 0..2 {
            let client = Client::connect_on(H::runtime(), with(EngineKind::Auto)).await.unwrap();
            assert_eq!(client.engine().kind, RunningEngine::Epoll);
            let why = client.engine().to_string();
            assert!(
                why.contains("io_uring_setup") && why.contains("seccomp") && why.contains("remedy"),
                "{why}"
            );
            smoke(client.clone()).await;
            client.close().await;
        }
        let forced = Client::connect_on(H::runtime(), with(EngineKind::Uring)).await.unwrap_err();
        assert!(matches!(forced, Error::Config(_)), "{forced:?}");
        let warnings = warnings.0.lock().unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for part in ["io_uring_setup", "seccomp", "remedy: "] {
            assert!(warnings[0].contains(part), "{warnings:?}");
            assert!(forced.to_string().contains(part), "{forced}");
        }
    });
}

/// In the child, at its end.
pub fn say_done() {
    println!("{DONE}");
}

/// H38: without io_uring, the smoke test of this suite.
pub fn epoll_instead<H: Host>(name: &str) {
    if !is_child() {
        return run_child(name);
    }
    let kit = Kit::<H>::new(EngineKind::Auto);
    child::<H>(&kit.options(), async |client| {
        client.set("k", vec![5_u8; 100_000]).await.unwrap();
        assert_eq!(client.get::<Vec<u8>, _>("k").await.unwrap().len(), 100_000);
        client.incr("n").await.unwrap();
        client.cmd::<()>("BLPOP q 0").await.unwrap_err();
    });
    say_done();
}

/// Instantiates [`epoll_instead`] for a host that runs without io_uring.
#[macro_export]
macro_rules! denied {
    ($name:ident: $host:ty) => {
        mod $name {
            #[test]
            fn epoll_instead() {
                let name = concat!(module_path!(), "::epoll_instead");
                $crate::kit::run(name, || $crate::denied::epoll_instead::<$host>(name));
            }
        }
    };
}
