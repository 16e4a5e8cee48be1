//! Systems that refuse io_uring, whole or in part (H38), or are too old for it (H39): a child of this process runs under
//! a seccomp filter. (What an older kernel lacks among the operations is tested beside the self-test.)

use crate::harness::*;
use respiral::engine::{AnyEngine, EngineKind, EngineReason, RunningEngine, UringRefusal};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which of `CALLS` the child must do without.
const VARIABLE: &str = "RESPIRAL_ENGINE_TEST_DENY";

/// A system call, what of it is refused (the second argument; all, if none) and with which errno.
const CALLS: [(&str, i64, Option<u64>, i32); 10] = [
    ("io_uring_setup", 425, None, 1),
    ("io_uring_enter", 426, None, 1),
    ("io_uring_register", 427, None, 1),
    ("io_uring_setup", 425, None, 38),
    ("io_uring_enter", 426, None, 38),
    ("io_uring_register", 427, None, 22),
    // H39. Before 6.0: no SINGLE_ISSUER; before 5.19: no COOP_TASKRUN. All flags that are not known are answered so.
    ("io_uring_setup", 425, None, 22),
    // Before 5.19: no ring of provided buffers (IORING_REGISTER_PBUF_RING).
    ("io_uring_register", 427, Some(22), 22),
    // IORING_REGISTER_EVENTFD.
    ("io_uring_register", 427, Some(4), 22),
    // H37.
    ("io_uring_setup", 425, None, 12),
];

/// Runs the test `refusing::{name}` of this binary in a child, which must come to its end.
fn run_child(name: &str, what: &str, mut command: Command) {
    let name = format!("refusing::{name}");
    match command.args(["--exact", &name, "--nocapture", "--test-threads=1"]).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("child done"), "{what}: {said}");
        }
        // The test binary lies where only its owner can run it.
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::PermissionDenied),
    }
}

fn this_binary() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

#[test]
fn h38_each_call_refused() {
    let _alone = alone();
    for (at, (call, ..)) in CALLS.iter().enumerate() {
        let mut command = this_binary();
        command.env(VARIABLE, at.to_string());
        run_child("child", call, command);
    }
}

/// H39: a kernel that calls itself older than 6.1, whatever it can do.
#[test]
fn h39_an_older_kernel() {
    let _alone = alone();
    let mut command = Command::new("setarch");
    command.arg("--uname-2.6").arg(std::env::current_exe().unwrap()).env(VARIABLE, "uname");
    run_child("child", "uname", command);
}

#[test]
fn child() {
    let Ok(at) = std::env::var(VARIABLE) else { return };
    let (call, errno) = match at.parse::<usize>() {
        Ok(at) => {
            let (call, number, second, errno) = CALLS[at];
            let is =
                |value| SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).unwrap();
            let rules = second.map(|value| SeccompRule::new(vec![is(value)]).unwrap()).into_iter().collect();
            let filter = SeccompFilter::new(
                [(number, rules)].into_iter().collect(),
                SeccompAction::Allow,
                SeccompAction::Errno(errno as u32),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            apply_filter(&seccompiler::BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
            (call, errno)
        }
        Err(_) => ("older than 6.1", 22),
    };
    let before = settled(descriptors);

    let (engine, info) = AnyEngine::new(&options(EngineKind::Auto)).unwrap();
    assert_eq!(info.kind, RunningEngine::Epoll);
    let EngineReason::Refused(refusal) = info.reason.clone() else { panic!("{info:?}") };
    match (errno, &refusal) {
        (1, UringRefusal::Forbidden { call: named }) => assert!(named.starts_with(call), "{named}"),
        (38, UringRefusal::Missing { call: named }) => assert!(named.starts_with(call), "{named}"),
        (22, UringRefusal::KernelTooOld { what }) => assert!(what.starts_with(call), "{what}"),
        (12, UringRefusal::LockedMemory { call: named }) => {
            assert!(named.starts_with(call) && refusal.remedy().contains("ulimit -l"), "{refusal}");
        }
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

/// How much memory the child may lock.
const POOR: &str = "RESPIRAL_ENGINE_TEST_POOR";

/// Rings count against the limit of locked memory, except for root (H37).
#[test]
fn h37_little_locked_memory() {
    let _alone = alone();
    for limit in [0, 64 * 1024] {
        let mut command = this_binary();
        command.env(POOR, limit.to_string());
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        run_child("poor_child", "poor", command);
    }
}

/// Makes engines until the limit is reached, and uses them all: the last one is of epoll, and says what would help.
#[test]
fn poor_child() {
    let Ok(limit) = std::env::var(POOR) else { return };
    let limit: u64 = limit.parse().unwrap();
    let both = rustix::process::Rlimit { current: Some(limit), maximum: Some(limit) };
    rustix::process::setrlimit(rustix::process::Resource::Memlock, both).unwrap();
    let (listener, _) = listen();
    let (mut hosts, mut refused) = (Vec::new(), None);
    // Kernels that charge the memory to a control group instead refuse none.
    while refused.is_none() && hosts.len() < 64 {
        match AnyEngine::new(&options(EngineKind::Auto)).unwrap().1 {
            info if info.kind == RunningEngine::Epoll => refused = Some(info),
            info => assert_eq!(info.reason, EngineReason::SelfTestPassed),
        }
        let mut host = Host::new(EngineKind::Auto);
        let peer = host.pair(id(0, 0), &listener);
        hosts.push((host, peer));
    }
    println!("{} clients with {limit} bytes: {refused:?}", hosts.len());
    assert!(limit == 0 || hosts.len() > 1, "one ring fits into 64 KiB");
    if let Some(info) = refused {
        let EngineReason::Refused(UringRefusal::LockedMemory { .. }) = info.reason else {
            panic!("{info:?}")
        };
        assert!(info.to_string().contains("remedy: raise the limit of locked memory (ulimit -l"), "{info}");
    }
    for (mut host, mut peer) in hosts {
        peer.write_all(b"works").unwrap();
        host.until(|host| host.seen[&id(0, 0)].received == b"works");
        host.finish();
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
