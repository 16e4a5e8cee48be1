//! The promises of [`LiveServer`], kept by every kind.
#![allow(
    clippy::disallowed_methods,
    reason = "tests against real servers live in real time, and wait for real processes"
)]

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use servers::{Kind, LiveServer};

/// The same test for every kind, each under its own name.
macro_rules! for_every_kind {
    ($($test:ident)*) => {
        for_every_kind!(@kind redis_70 Redis70 $($test)*);
        for_every_kind!(@kind redis_82 Redis82 $($test)*);
        for_every_kind!(@kind valkey_81 Valkey81 $($test)*);
        for_every_kind!(@kind valkey_91 Valkey91 $($test)*);
    };
    (@kind $module:ident $kind:ident $($test:ident)*) => {
        mod $module {
            $(#[test] fn $test() { super::$test(servers::Kind::$kind) })*
        }
    };
}

for_every_kind! {
    lives_dies_and_comes_back
    knows_its_options
    counts_its_clients
    freezes_and_goes_on
    says_why_it_did_not_start
    refuses_a_port_a_stranger_took
    can_be_a_cluster_node
}

/// Whether the process runs; one that only waits to be reaped does not.
fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within ten seconds: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn lives_dies_and_comes_back(kind: Kind) {
    let mut server = LiveServer::start(kind).unwrap();
    let version = format!("_version:{}.", kind.name().split_once('-').unwrap().1);
    assert!(server.cli(&["INFO", "server"]).contains(&version));
    assert_eq!(server.cli(&["PING"]), "PONG");
    assert_eq!(server.cli(&["SET", "k", "v"]), "OK");
    assert_eq!(server.url(), format!("redis://{}", server.addr()));

    let (first, addr) = (server.pid(), server.addr());
    server.kill().unwrap();
    server.kill().unwrap();
    assert!(!is_running(first));
    assert!(server.try_cli(&["PING"]).is_err());

    server.restart().unwrap();
    assert_eq!(server.addr(), addr);
    assert_ne!(server.pid(), first);
    assert_eq!(server.cli(&["GET", "k"]), "(nil)");

    let (pid, log) = (server.pid(), server.log_path());
    assert!(is_running(pid) && log.is_file());
    drop(server);
    assert!(!is_running(pid));
    assert!(!log.parent().unwrap().exists());
    assert!(TcpStream::connect(addr).is_err());
}

fn knows_its_options(kind: Kind) {
    let mut server = LiveServer::builder(kind)
        .password("p w@")
        .user("anna", "secret", "~a:* +@all -@dangerous")
        .user("berta", "hidden", "~* +get")
        .arg("--maxmemory", "100mb")
        .args(["--client-output-buffer-limit", "pubsub", "1mb", "1mb", "1"])
        .databases(3)
        .unix_socket(true)
        .tls(false)
        .start()
        .unwrap();
    assert_eq!(server.url(), format!("redis://:p%20w%40@{}", server.addr()));
    assert_eq!(server.tls_addr(), None);
    for _ in 0..2 {
        assert_eq!(server.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n104857600");
        assert_eq!(server.cli(&["CONFIG", "GET", "databases"]), "databases\n3");
        assert_eq!(server.cli(&["AUTH", "anna", "secret"]), "OK");
        assert_eq!(server.cli(&["AUTH", "berta", "hidden"]), "OK");
        let wrong = server.cli(&["AUTH", "anna", "wrong"]);
        assert!(wrong.starts_with("(error) WRONGPASS"), "{wrong}");
        UnixStream::connect(server.unix_path().unwrap()).unwrap();
        server.restart().unwrap();
    }
}

fn counts_its_clients(kind: Kind) {
    let server = LiveServer::start(kind).unwrap();
    assert_eq!(server.connected_clients(), 0);
    assert!(server.client_list().is_empty());
    let one = TcpStream::connect(server.addr()).unwrap();
    let _two = TcpStream::connect(server.addr()).unwrap();
    assert_eq!(server.connected_clients(), 2);
    let list = server.client_list();
    let addr = format!(" addr={} ", one.local_addr().unwrap());
    assert_eq!(list.len(), 2);
    assert!(list.iter().any(|line| line.contains(&addr)), "{list:?}");
}

fn freezes_and_goes_on(kind: Kind) {
    let mut server = LiveServer::start(kind).unwrap();
    let state = |letter: &str, pid: u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(letter)
    };
    let pid = server.pid();
    server.stop_signal().unwrap();
    eventually("frozen", || state(") T ", pid));
    server.cont_signal().unwrap();
    assert_eq!(server.cli(&["PING"]), "PONG");
    server.stop_signal().unwrap();
    drop(server);
    assert!(!is_running(pid), "a frozen server is killed too");
}

fn says_why_it_did_not_start(kind: Kind) {
    let error = LiveServer::builder(kind).arg("--no-such-option", "1").start().unwrap_err().to_string();
    let (what, log) = error.split_once("its log ends with:").unwrap();
    assert!(what.contains(kind.name()), "{error}");
    assert!(what.contains("exited"), "{error}");
    assert!(log.contains("no-such-option"), "{error}");
}

fn refuses_a_port_a_stranger_took(kind: Kind) {
    let mut server = LiveServer::start(kind).unwrap();
    server.kill().unwrap();
    let stranger = TcpListener::bind(server.addr()).unwrap();
    let error = server.restart().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    drop(stranger);
    server.restart().unwrap();
    assert_eq!(server.cli(&["PING"]), "PONG");
}

fn can_be_a_cluster_node(kind: Kind) {
    let mut server = LiveServer::builder(kind).arg("--cluster-enabled", "yes").start().unwrap();
    let id = server.cli(&["CLUSTER", "MYID"]);
    assert_eq!(id.len(), 40);
    server.restart().unwrap();
    assert_eq!(server.cli(&["CLUSTER", "MYID"]), id);
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(|| LiveServer::start(Kind::Redis70).unwrap()).join().unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(server.cli(&["PING"]), "PONG");
}

#[test]
fn many_servers_start_at_once() {
    let starts: Vec<_> =
        (0..8).map(|index| thread::spawn(move || LiveServer::start(Kind::ALL[index % 4]).unwrap())).collect();
    let servers: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    for server in &servers {
        let info = server.cli(&["INFO", "server"]);
        assert!(info.contains(&format!("process_id:{}\r", server.pid())));
    }
}

/// This test runs itself once more, as the process to be killed.
#[test]
fn a_server_dies_with_a_killed_test_process() {
    const VICTIM: &str = "RESPIRAL_SERVERS_TEST_VICTIM";
    const LINE: &str = "server of the victim: ";
    if std::env::var_os(VICTIM).is_some() {
        let server = LiveServer::start(Kind::Valkey91).unwrap();
        let log = server.log_path();
        println!("\n{LINE}{} {}", server.pid(), log.parent().unwrap().display());
        thread::sleep(Duration::from_secs(60));
        return;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return; // Nothing was promised.
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_server_dies_with_a_killed_test_process", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix(LINE).map(str::to_owned))
        .expect("the victim's server");
    let (pid, directory) = line.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    assert!(is_running(pid));
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the victim's server is gone", || !is_running(pid));
    // Nobody was left to do it.
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn tls_is_on_a_port_of_its_own() {
    let server = LiveServer::builder(Kind::Redis70).tls(true).start().unwrap();
    let addr = server.tls_addr().unwrap();
    assert_ne!(addr, server.addr());
    assert_eq!(server.tls_url().unwrap(), format!("rediss://{addr}"));
    let authority: &Path = server.tls_authority_path().unwrap();
    let output = Command::new("openssl")
        .args(["s_client", "-verify_return_error", "-verify_ip", "127.0.0.1"])
        .args(["-connect", &addr.to_string(), "-CAfile"])
        .arg(authority)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
}

#[test]
fn tls_is_refused_where_it_was_not_built_in() {
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_tls()) {
        let error = LiveServer::builder(kind).tls(true).start().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
