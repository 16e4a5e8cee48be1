//! H12: calls that are interrupted are made again. A child of this process is stopped and continued all the time, which
//! ends waits with EINTR without any handler of a signal.

use crate::harness::*;
use respiral::engine::EngineKind;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

const VARIABLE: &str = "RESPIRAL_ENGINE_TEST_INTERRUPTED";

#[test]
fn h12_interrupted_calls_are_made_again() {
    let _alone = alone();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupted::child", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let (start, mut stops) = (now(), 0);
    while child.try_wait().unwrap().is_none() {
        for signal in [Signal::STOP, Signal::CONT] {
            kill_process(pid, signal).unwrap();
            pause(Duration::from_micros(300));
        }
        stops += 1;
        assert!(start.elapsed() < 3 * LIMIT, "the child hangs");
    }
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.contains("child done"), "{said}");
    println!("stopped {stops} times; {said}");
}

/// Engines are made, used and closed: all calls of theirs that can wait, and the host's.
#[test]
fn child() {
    if std::env::var(VARIABLE).is_err() {
        return;
    }
    let mut interrupted = 0;
    for kind in [EngineKind::Uring, EngineKind::Epoll] {
        for generation in 0..10 {
            let (listener, _) = listen();
            let mut host = Host::new(kind);
            let a = id(0, generation);
            let mut peer = host.pair(a, &listener);
            let echo = in_thread(move || {
                let mut message = [0; 16];
                while let Ok(16) = peer.read(&mut message) {
                    peer.write_all(&message).unwrap();
                }
            });
            for round in 1..=100 {
                host.send(a, transmit(&[round as u8; 16], 16));
                host.until(|host| host.seen[&a].owed == 0 && host.seen[&a].received.len() == round * 16);
            }
            host.close_all();
            echo.join().unwrap();
            interrupted += host.interrupted;
            host.finish();
        }
    }
    println!("{interrupted} waits were interrupted; child done");
}
