//! Faults over a socket, and the server's life.

mod common;

use common::Client;
use respiral_testkit::{Accept, Hangup, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

#[test]
fn splitting_changes_no_byte() {
    let server = Server::start().unwrap();
    server.new_connections().split(1);
    let mut client = Client::connect(&server);
    client.ask("SET k hello\r\nGET k\r\n", "+OK\r\n$5\r\nhello\r\n");
    server.connection(1).split_with_pause(3, TICK);
    client.ask("GET k\r\nPING\r\n", "$5\r\nhello\r\n+PONG\r\n");
    server.all_connections().heal().delay(TICK);
    client.ask("GET k\r\nPING\r\n", "$5\r\nhello\r\n+PONG\r\n");
}

#[test]
fn stalled_connections_are_silent_and_lose_nothing() {
    let server = Server::start().unwrap();
    let (mut stalled, mut other) = (Client::connect(&server), Client::connect(&server));
    stalled.ask("PING\r\n", "+PONG\r\n");
    other.ask("PING\r\n", "+PONG\r\n");
    server.connection(1).stall();
    let before = server.bytes_received();
    stalled.send("ECHO later\r\n");
    other.ask("PING\r\n", "+PONG\r\n");
    assert_eq!(server.bytes_received() - before, 6, "only the other's bytes");
    stalled.expect_silence();
    server.connection(1).resume();
    stalled.expect("$5\r\nlater\r\n");

    server.open_connections().stall();
    Client::connect(&server).ask("PING\r\n", "+PONG\r\n");
    drop(stalled);
    server.open_connections().resume();
    assert!(server.wait_for(|stats| stats.connections_open == 1));
}

#[test]
fn cutting_after_so_many_bytes() {
    let server = Server::start().unwrap();
    for how in [Hangup::Fin, Hangup::Reset] {
        let mut client = Client::connect(&server);
        client.ask("PING\r\n", "+PONG\r\n");
        let number = server.connections_accepted();
        server.connection(number).cut_after(5, how);
        client.ask("ECHO hello\r\nECHO hello\r\n", "$5\r\nh");
        match how {
            Hangup::Fin => client.expect_end(),
            Hangup::Reset => client.expect_reset(),
        }
    }
    let mut client = Client::connect(&server);
    client.ask("PING\r\n", "+PONG\r\n");
    server.all_connections().cut_after(0, Hangup::Fin);
    client.expect_end();
    Client::connect(&server).expect_end();
}

#[test]
fn ending_all_connections() {
    let server = Server::start().unwrap();
    for how in [Hangup::Fin, Hangup::Reset] {
        let mut clients = [Client::connect(&server), Client::connect(&server)];
        for client in &mut clients {
            client.ask("PING\r\n", "+PONG\r\n");
        }
        server.open_connections().hang_up(how);
        for client in &mut clients {
            match how {
                Hangup::Fin => client.expect_end(),
                Hangup::Reset => client.expect_reset(),
            }
        }
        assert_eq!(server.stats().connections_open, 0);
    }
}

#[test]
fn slow_readers_and_small_buffers_get_there() {
    let server = Server::builder().socket_buffers(4096).start().unwrap();
    server.new_connections().slow_reader(700, TICK).socket_buffers(4096);
    let mut client = Client::connect(&server);
    let value = "x".repeat(20_000);
    client.ask(&format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000\r\n{value}\r\n"), "+OK\r\n");
    client.ask("GET k\r\n", &format!("$20000\r\n{value}\r\n"));
}

#[test]
fn a_server_that_writes_before_it_reads_does_not_read() {
    let server = Server::builder().socket_buffers(64 * 1024).start().unwrap();
    server.new_connections().read_only_when_written();
    let value = "x".repeat(16 << 20);
    server.execute(["SET", "big", &value]);
    let mut client = Client::connect(&server);
    client.send("GET big\r\n");
    assert!(server.wait_for(|stats| stats.commands == 1));
    client.send("INCR n\r\n");
    client.expect("$16777216\r\n");
    assert_eq!(server.stats().commands, 1);
    client.expect(&value);
    client.expect("\r\n:1\r\n");
}

#[test]
fn ways_to_accept() {
    let server = Server::start().unwrap();
    server.accept(Accept::Silent).unwrap();
    let mut silent = Client::connect(&server);
    silent.send("PING\r\n");
    assert!(server.wait_for(|stats| stats.connections_accepted == 1));
    assert_eq!(server.bytes_received(), 0);
    server.open_connections().resume();
    silent.expect("+PONG\r\n");

    server.accept(Accept::Backlog).unwrap();
    let mut waiting = Client::connect(&server);
    waiting.send("PING\r\n");
    silent.ask("PING\r\n", "+PONG\r\n");
    assert_eq!(server.connections_accepted(), 1);
    server.accept(Accept::Serve).unwrap();
    waiting.expect("+PONG\r\n");

    server.accept(Accept::HangUp(Hangup::Fin)).unwrap();
    Client::connect(&server).expect_end();
    server.accept(Accept::HangUp(Hangup::Reset)).unwrap();
    // The reset may overtake the connect itself.
    if let Ok(mut stream) = TcpStream::connect(server.addr()) {
        assert!(stream.read(&mut [0]).is_err());
    }

    server.accept(Accept::Refuse).unwrap();
    let refused = TcpStream::connect(server.addr()).map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
    silent.ask("PING\r\n", "+PONG\r\n");
    server.restart().unwrap();
    assert!(TcpStream::connect(server.addr()).is_err(), "it came back, and refuses as before");
    server.accept(Accept::Serve).unwrap();
    Client::connect(&server).ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn healing_ends_a_pause_that_has_begun() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    client.ask("PING\r\n", "+PONG\r\n");
    server
        .all_connections()
        .split_with_pause(2, Duration::from_secs(3600))
        .slow_reader(6, Duration::from_secs(3600));
    client.send("PING\r\nPING\r\n");
    client.expect("+P");
    server.all_connections().heal();
    client.expect("ONG\r\n+PONG\r\n");
}

#[test]
fn stop_and_restart_keep_the_port() {
    let server = Server::start().unwrap();
    let addr = server.addr();
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", addr.port()));
    let mut client = Client::connect(&server);
    client.ask("SET k v\r\n", "+OK\r\n");
    server.stop().unwrap();
    client.expect_end();
    let refused = TcpStream::connect(addr).map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
    server.stop().unwrap();
    server.restart().unwrap();
    assert_eq!(server.addr(), addr);
    Client::connect(&server).ask("GET k\r\n", "$1\r\nv\r\n");
    server.restart_empty().unwrap();
    Client::connect(&server).ask("GET k\r\n", "$-1\r\n");
}

#[test]
fn unix_sockets() {
    let path = std::env::temp_dir().join(format!("respiral-testkit-{}.sock", std::process::id()));
    let server = Server::builder().bind_unix(&path).start().unwrap();
    assert_eq!(server.url(), format!("unix://{}", path.display()));
    let ping = || -> std::io::Result<[u8; 7]> {
        let mut reply = [0; 7];
        let mut stream = UnixStream::connect(&path)?;
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut reply)?;
        Ok(reply)
    };
    assert_eq!(ping().unwrap(), *b"+PONG\r\n");
    server.stop().unwrap();
    assert!(ping().is_err());
    server.restart().unwrap();
    assert_eq!(ping().unwrap(), *b"+PONG\r\n");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn time_passes_when_told() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    client.ask("SET k v EX 3600\r\nTTL k\r\n", "+OK\r\n:3600\r\n");
    server.advance_clock(Duration::from_secs(3600));
    client.ask("GET k\r\n", "$-1\r\n");
}

#[test]
fn a_dropped_server_ends_its_clients() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    client.ask("PING\r\n", "+PONG\r\n");
    let addr = server.addr();
    drop(server);
    client.expect_end();
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn a_panic_in_a_script_ends_the_connections() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    server.script(
        |_, request| if request.is("PING") { panic!("this panic belongs to the test") } else { None },
    );
    client.send("PING\r\n");
    let mut rest = Vec::new();
    let _ = client.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn calls_from_other_threads_under_load() {
    let server = Server::start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(&server);
            for _ in 0..50 {
                client.ask(&"INCR n\r\n".repeat(8), "");
            }
            let mut replies = Vec::new();
            client.send("QUIT\r\n");
            client.0.read_to_end(&mut replies).unwrap();
            assert!(replies.ends_with(b":400\r\n+OK\r\n"));
        });
        scope.spawn(|| {
            for bytes in (1..100).cycle().take(300) {
                server.all_connections().split(bytes);
            }
        });
    });
    assert_eq!(server.execute(["GET", "n"]), b"$3\r\n400\r\n");
}
