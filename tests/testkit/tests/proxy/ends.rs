//! How connections begin and end: ends that pass, cuts, hang-ups, ways to accept, and that nothing is left.

use crate::common::Client;
use crate::{DESCRIPTORS, Stage, TICK, beside, both_ways, expect_hangup};
use respiral_testkit::{Accept, Connections, Hangup, Proxy, ProxyStats};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::PoisonError;
use std::time::Duration;

#[test]
fn ends_of_stream_pass_behind_the_bytes_before_them() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        way.delay(TICK);
        from.send("last words");
        from.0.shutdown(Shutdown::Write).unwrap();
        to.expect("last words");
        to.expect_end();
        // The other direction is still open, as between real peers.
        to.send("heard");
        drop(to);
        from.expect("heard");
        from.expect_end();
        assert!(stage.proxy.wait_for(|stats| stats.connections_open == 0));
    });
}

/// One end resets while its direction is stalled, so that the proxy has not seen it.
fn reset_unseen(stage: &Stage, server: bool) -> (Client, Connections<'_, Proxy>) {
    let ([mut from, mut to], way) = stage.towards(server);
    from.send("last words");
    to.expect("last words");
    // A socket that is closed with unread bytes resets.
    to.send("unread");
    from.0.peek(&mut [0]).unwrap();
    way.stall();
    (to, way)
}

#[test]
fn resets_pass() {
    both_ways(|stage, server| {
        let (mut to, way) = reset_unseen(stage, server);
        to.expect_silence();
        way.resume();
        to.expect_reset();
    });
}

/// The system tells of a reset once: whoever writes first takes the message, and what is read later ends in silence.
#[test]
fn resets_pass_that_a_write_has_met() {
    both_ways(|stage, server| {
        let (mut to, way) = reset_unseen(stage, server);
        let before = stage.proxy.stats().bytes_discarded;
        to.send("no receiver");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_discarded == before + 11));
        way.resume();
        to.expect_reset();
    });
}

#[test]
fn what_a_reset_finds_on_its_way_is_counted() {
    both_ways(|stage, server| {
        let ([mut from, _to], way) = stage.towards(server);
        let before = stage.proxy.stats().bytes_discarded;
        way.delay(Duration::from_secs(60));
        from.send("on its way");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == 10));
        stage.proxy.open_connections().reset();
        assert_eq!(stage.proxy.stats().bytes_discarded, before + 10);
    });
}

#[test]
fn cuts_are_exact() {
    both_ways(|stage, server| {
        for how in [Hangup::Fin, Hangup::Reset] {
            for bytes in 0..=8 {
                let ([mut from, mut to], way) = stage.towards(server);
                from.send("before ");
                to.expect("before ");
                let before = stage.proxy.stats();
                way.split(3).cut_after(bytes, how);
                if bytes > 0 {
                    // The cut may come while this is sent in pieces, not before its first byte.
                    from.send("12345678");
                }
                to.expect(&"12345678"[..bytes]);
                expect_hangup(&mut to, how);
                expect_hangup(&mut from, how);
                let stats = stage.proxy.stats();
                let passed = |stats: ProxyStats| stats.bytes_to_server + stats.bytes_to_client;
                assert_eq!(passed(stats) - passed(before), bytes as u64);
            }
        }
        assert!(stage.proxy.wait_for(|stats| stats.connections_open == 0));
    });
}

#[test]
fn either_side_or_both_are_ended() {
    both_ways(|stage, server| {
        // One direction ends cleanly; the other one goes on.
        let ([mut from, mut to], way) = stage.towards(server);
        way.close();
        to.expect_end();
        to.send("onward");
        from.expect("onward");
        from.send("to nobody");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_discarded == 9));
        drop(to);
        from.expect_end();

        // One side is reset; the other hears nothing, until it is reset as well.
        let ([mut from, mut to], way) = stage.towards(server);
        way.reset();
        to.expect_reset();
        from.send("to nobody");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_discarded == 18));
        from.expect_silence();
        stage.proxy.open_connections().reset();
        from.expect_reset();
        let ([from, mut to], way) = stage.towards(server);
        way.reset();
        to.expect_reset();
        drop(from);
        assert!(stage.proxy.wait_for(|stats| stats.connections_open == 0));

        for how in [Hangup::Fin, Hangup::Reset] {
            let [mut client, mut server] = stage.connect();
            stage.proxy.open_connections().hang_up(how);
            expect_hangup(&mut client, how);
            expect_hangup(&mut server, how);
        }
    });
}

#[test]
fn ways_to_accept() {
    beside(|stage| {
        let [mut first, mut first_server] = stage.connect();
        let refused = || TcpStream::connect(stage.proxy.addr()).map_err(|error| error.kind()).err();
        stage.proxy.accept(Accept::Refuse).unwrap();
        assert_eq!(refused(), Some(ErrorKind::ConnectionRefused));
        first.send("goes on");
        first_server.expect("goes on");

        stage.proxy.accept(Accept::Backlog).unwrap();
        let mut waiting = stage.dial();
        waiting.send("hello");
        first.send("turns go by");
        first_server.expect("turns go by");
        assert_eq!(stage.proxy.connections_accepted(), 1);
        stage.proxy.accept(Accept::Serve).unwrap();
        Client::new(stage.server.accept().unwrap().0).expect("hello");

        stage.proxy.accept(Accept::Silent).unwrap();
        let [mut silent, mut server] = stage.connect();
        silent.send("hello");
        first.send("turns go by");
        first_server.expect("turns go by");
        server.expect_silence();
        stage.proxy.open_connections().resume();
        server.expect("hello");

        stage.proxy.accept(Accept::HangUp(Hangup::Fin)).unwrap();
        stage.dial().expect_end();
        stage.proxy.accept(Accept::HangUp(Hangup::Reset)).unwrap();
        // The reset may overtake the connect itself.
        if let Ok(mut stream) = TcpStream::connect(stage.proxy.addr()) {
            assert!(stream.read(&mut [0]).is_err());
        }
        stage.server.set_nonblocking(true).unwrap();
        assert_eq!(stage.server.accept().map_err(|error| error.kind()).err(), Some(ErrorKind::WouldBlock));
    });
}

#[test]
fn stop_and_restart_keep_the_port() {
    beside(|stage| {
        let [mut client, mut server] = stage.connect();
        stage.proxy.stop().unwrap();
        client.expect_end();
        server.expect_end();
        assert!(TcpStream::connect(stage.proxy.addr()).is_err());
        stage.proxy.restart().unwrap();
        let [mut client, mut server] = stage.connect();
        client.send("hello");
        server.expect("hello");
    });
}

#[test]
fn targets_that_are_down_and_others() {
    let _beside = DESCRIPTORS.read().unwrap_or_else(PoisonError::into_inner);
    let Stage { proxy, server } = Stage::new();
    drop(server);
    let mut client = Client::new(TcpStream::connect(proxy.addr()).unwrap());
    client.0.write_all(b"anyone?").unwrap();
    client.expect_end();
    assert!(proxy.wait_for(|stats| stats.connects_failed == 1 && stats.connections_open == 0));

    let server = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
    proxy.retarget(server.local_addr().unwrap());
    let stage = Stage { proxy, server };
    let [mut client, mut old] = stage.connect();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    stage.proxy.retarget(other.local_addr().unwrap());
    let mut next = stage.dial();
    let mut new = Client::new(other.accept().unwrap().0);
    next.send("to the new one");
    new.expect("to the new one");
    client.send("to the old one");
    old.expect("to the old one");
}

#[test]
fn a_dropped_proxy_ends_both_sides() {
    let _beside = DESCRIPTORS.read().unwrap_or_else(PoisonError::into_inner);
    let stage = Stage::new();
    let [mut client, mut server] = stage.connect();
    client.send("hello");
    server.expect("hello");
    let addr = stage.proxy.addr();
    drop(stage);
    client.expect_end();
    server.expect_end();
    assert!(TcpStream::connect(addr).is_err());
}

/// What this process has spent so far.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    // utime and stime, in hundredths of a second.
    Duration::from_millis(
        10 * fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>(),
    )
}

#[test]
fn a_thousand_connections_leave_no_descriptor() {
    let _alone = DESCRIPTORS.write().unwrap_or_else(PoisonError::into_inner);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    let stage = Stage::new();
    let server = stage.server.try_clone().unwrap();
    // Half of them are at work or in trouble when the proxy goes.
    let mut ends: Vec<_> = (0..1000).map(|_| stage.connect()).collect();
    assert_eq!(stage.proxy.stats().connections_open, 1000);
    for (number, [client, server]) in (1..).zip(&mut ends) {
        match number % 4 {
            0 => drop(stage.proxy.connection(number).stall()),
            1 => drop(stage.proxy.connection(number).black_hole()),
            2 => drop(stage.proxy.connection(number).reset()),
            _ => {
                client.send("hello");
                server.expect("hello");
            }
        }
    }
    // Those that are stalled while their ends have bytes, or are gone, cost no time.
    let later = ends.split_off(500);
    drop(ends);
    assert!(stage.proxy.wait_for(|stats| stats.connections_open <= 250 + 250 + 125));
    later.iter().for_each(|[client, _]| drop((&client.0).write(b"more")));
    std::thread::sleep(TICK);
    let spent = cpu_time();
    std::thread::sleep(10 * TICK);
    assert!(cpu_time() - spent < 2 * TICK, "{:?}", cpu_time() - spent);
    drop((stage, server));
    drop(later);
    assert_eq!(descriptors(), before);
}
