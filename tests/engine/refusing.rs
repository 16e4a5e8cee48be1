//! Systems that refuse io_uring, whole or in part (H38): a child of this process runs under a seccomp filter.

use crate::harness::*;
use respiral::engine::{AnyEngine, EngineKind, EngineReason, RunningEngine, UringRefusal};
use seccompiler::{SeccompAction, SeccompFilter, apply_filter};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The number of the system call that the child must do without.
const VARIABLE: &str = "RESPIRAL_ENGINE_TEST_DENY";

const CALLS: [(&str, i64, i32); 6] = [
    ("io_uring_setup", 425, 1),
    ("io_uring_enter", 426, 1),
    ("io_uring_register", 427, 1),
    ("io_uring_setup", 425, 38),
    ("io_uring_enter", 426, 38),
    ("io_uring_register", 427, 22),
];

#[test]
fn h38_each_call_refused() {
    let _alone = alone();
    for (at, (call, ..)) in CALLS.iter().enumerate() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "refusing::child", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, at.to_string())
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{call}: {said}");
        assert!(said.contains("child done"), "{call}: {said}");
    }
}

#[test]
fn child() {
    let Ok(at) = std::env::var(VARIABLE) else { return };
    let (call, number, errno) = CALLS[at.parse::<usize>().unwrap()];
    let filter = SeccompFilter::new(
        [(number, vec![])].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap();
    apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
    let before = settled(descriptors);

    let (engine, info) = AnyEngine::new(&options(EngineKind::Auto)).unwrap();
    assert_eq!(info.kind, RunningEngine::Epoll);
    let EngineReason::Refused(refusal) = info.reason.clone() else { panic!("{info:?}") };
    match (errno, &refusal) {
        (1, UringRefusal::Forbidden { call: named }) => assert!(named.starts_with(call), "{named}"),
        (38, UringRefusal::Missing { call: named }) => assert!(named.starts_with(call), "{named}"),
        (22, UringRefusal::KernelTooOld { .. }) => {}
        other => panic!("{other:?}"),
    }
    println!("{info}");
    assert!(
        info.to_string().starts_with("epoll: io_uring refused: ") && info.to_string().contains("; remedy: ")
    );
    drop(engine);

    let forced = AnyEngine::new(&options(EngineKind::Uring)).map(|_| ()).unwrap_err();
    assert!(forced.to_string().contains(&refusal.to_string()), "{forced}");
    assert!(matches!(forced, respiral::Error::Config(_)));

    // And what it falls back to works.
    let (listener, _) = listen();
    let mut host = Host::new(EngineKind::Auto);
    let mut peer = host.pair(id(0, 0), &listener);
    peer.write_all(b"works").unwrap();
    host.until(|host| host.seen[&id(0, 0)].received == b"works");
    host.finish();
    drop((peer, listener));
    assert_eq!(settled(descriptors), before);
    assert_eq!(respiral::engine::leaked_engines(), 0);
    println!("child done");
}

/// The variable that makes a child of this process live with no locked memory.
const POOR: &str = "RESPIRAL_ENGINE_TEST_POOR";

/// Rings count against the limit of locked memory, except for root (H37).
#[test]
fn h37_no_locked_memory() {
    let _alone = alone();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "refusing::poor_child", "--nocapture", "--test-threads=1"]).env(POOR, "1");
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("child done"), "{said}");
        }
        // The test binary lies where only its owner can run it.
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::PermissionDenied),
    }
}

#[test]
fn poor_child() {
    if std::env::var(POOR).is_err() {
        return;
    }
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(rustix::process::Resource::Memlock, none).unwrap();
    let (engine, info) = AnyEngine::new(&options(EngineKind::Auto)).unwrap();
    drop(engine);
    println!("{info}");
    match info.reason {
        EngineReason::Refused(UringRefusal::LockedMemory { .. }) => {
            assert!(info.to_string().contains("ulimit -l"), "{info}");
        }
        // Kernels that charge the memory to a control group instead.
        EngineReason::SelfTestPassed => {}
        other => panic!("{other:?}"),
    }
    println!("child done");
}

#[test]
fn the_choice_is_told() {
    let _alone = alone();
    let (engine, info) = AnyEngine::new(&options(EngineKind::Uring)).unwrap();
    assert_eq!(
        (info.kind, &info.reason, info.to_string()),
        (RunningEngine::Uring, &EngineReason::Forced, "io_uring: forced by options".into())
    );
    drop(engine);
    let (engine, info) = AnyEngine::new(&options(EngineKind::Auto)).unwrap();
    assert_eq!(
        (info.kind, &info.reason, info.to_string()),
        (RunningEngine::Uring, &EngineReason::SelfTestPassed, "io_uring".into())
    );
    drop(engine);
    let (_, info) = AnyEngine::new(&options(EngineKind::Epoll)).unwrap();
    assert_eq!((info.kind, info.to_string()), (RunningEngine::Epoll, "epoll: forced by options".into()));
}

#[test]
fn bad_options_are_named() {
    let _alone = alone();
    let refused = AnyEngine::new(&options(EngineKind::Auto).buffer_count(100)).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("buffer_count"), "{refused}");
}
