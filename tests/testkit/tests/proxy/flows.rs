//! What passes while connections live: pieces, delays, rates, stalls, black holes, changed bytes, and how much is held.

use crate::{AGES, TICK, beside, both_ways};
use respiral_testkit::{Corrupt, Hangup, ProxyStats};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// What one direction holds, as documented.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// Bytes of which no two neighbourhoods are alike.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(next).collect()
}

#[test]
fn split_sends_pieces_of_so_many_bytes() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        way.split_with_pause(3, AGES);
        from.send("abcdefg");
        to.expect("abc");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == 4));
        to.expect_silence();
        way.split(1);
        to.expect("defg");
        // More pieces than one turn sends; and pieces with short pauses.
        let value = noise(20_000);
        from.0.write_all(&value).unwrap();
        let mut found = vec![0; value.len()];
        to.0.read_exact(&mut found).unwrap();
        assert!(found == value);
        way.split_with_pause(700, Duration::from_micros(100));
        from.0.write_all(&value).unwrap();
        to.0.read_exact(&mut found).unwrap();
        assert!(found == value);
    });
}

#[test]
fn delay_keeps_the_order() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        let began = Instant::now();
        way.delay(4 * TICK);
        from.send("late ");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == 5));
        // What comes later and is delayed less must wait.
        way.delay(TICK);
        from.send("later ");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == 11 || stats.bytes_held == 0));
        way.heal();
        from.send("latest");
        to.expect("late later latest");
        assert!(began.elapsed() >= 4 * TICK);
    });
}

#[test]
fn rate_limits_bytes_per_second() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        way.rate(1_000_000);
        let began = Instant::now();
        let value = noise(100_000);
        from.0.write_all(&value).unwrap();
        let mut found = vec![0; value.len()];
        to.0.read_exact(&mut found).unwrap();
        assert!(found == value);
        // (The last piece has no pause behind it.)
        assert!(began.elapsed() >= Duration::from_millis(85), "{:?}", began.elapsed());
        way.rate(1);
        from.send("xy");
        to.expect("x");
        way.heal();
        to.expect("y");
    });
}

#[test]
fn stalled_directions_are_silent_and_lose_nothing() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        way.stall();
        from.send("held up");
        from.0.shutdown(Shutdown::Write).unwrap();
        // The other direction goes on.
        to.send("onward");
        from.expect("onward");
        assert_eq!(stage.proxy.stats().bytes_held, 0, "a stall does not read");
        to.expect_silence();
        way.resume();
        to.expect("held up");
        to.expect_end();
    });
}

#[test]
fn a_stalled_connection_does_not_tell_that_its_ends_are_gone() {
    beside(|stage| {
        let [client, mut server] = stage.connect();
        let [mut other, mut other_server] = stage.connect();
        stage.proxy.connection(1).stall();
        drop(client);
        other.send("turns go by");
        other_server.expect("turns go by");
        server.expect_silence();
        assert_eq!(stage.proxy.stats().connections_open, 2);
        stage.proxy.open_connections().resume();
        server.expect_end();
    });
}

#[test]
fn a_black_hole_swallows_bytes_and_ends() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        way.delay(AGES);
        from.send("held ");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == 5));
        way.black_hole();
        from.send("swallowed");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_discarded == 14));
        to.send("onward");
        from.expect("onward");
        way.heal();
        from.send("passed");
        to.expect("passed");
        way.black_hole();
        from.0.shutdown(Shutdown::Write).unwrap();
        to.send("more");
        from.expect("more");
        to.expect_silence();
        assert_eq!(stage.proxy.stats().connections_open, 1);
        drop(to);
        from.expect_end();
        assert!(stage.proxy.wait_for(|stats| stats.connections_open == 0));
    });
}

#[test]
fn corruption_is_exact() {
    both_ways(|stage, server| {
        let ([mut from, mut to], way) = stage.towards(server);
        for (offset, split) in (0..6).flat_map(|offset| [(offset, 1), (offset, 4), (offset, 100)]) {
            way.split(split);
            for corrupt in [Corrupt::Replace(b'?'), Corrupt::Flip(0x20)] {
                way.corrupt_after(offset, corrupt);
                // In two writes, so that the offset may lie beyond what has arrived.
                from.send("ABC");
                from.send("DEF");
                let mut wanted = *b"ABCDEF";
                wanted[offset] = if corrupt == Corrupt::Replace(b'?') { b'?' } else { wanted[offset] ^ 0x20 };
                to.expect(std::str::from_utf8(&wanted).unwrap());
            }
        }
        from.send("ABCDEF");
        to.expect("ABCDEF");
    });
}

#[test]
fn faults_of_connections_to_come() {
    beside(|stage| {
        let [mut first, mut first_server] = stage.connect();
        stage
            .proxy
            .new_connections()
            .to_client()
            .corrupt_after(2, Corrupt::Replace(b'-'))
            .cut_after(5, Hangup::Fin);
        for _ in 0..2 {
            let [mut client, mut server] = stage.connect();
            client.send("abcdef");
            server.expect("abcdef");
            server.send("abcdef");
            client.expect("ab-de");
            client.expect_end();
            server.expect_end();
        }
        first_server.send("abcdef");
        first.expect("abcdef");
        stage.proxy.new_connections().heal();
        let [mut client, mut server] = stage.connect();
        server.send("abcdef");
        client.expect("abcdef");
    });
}

#[test]
fn what_is_not_read_is_not_held_without_bound() {
    both_ways(|stage, server| {
        stage.proxy.new_connections().socket_buffers(64 * 1024);
        let ([mut from, mut to], way) = stage.towards(server);
        let value = noise(1 << 20).repeat(32);
        let mut sent = 0;
        from.0.set_nonblocking(true).unwrap();
        // The kernels of all sockets take some MiB, then nobody takes any more.
        let (mut refusals, began) = (0, Instant::now());
        while refusals < 100 {
            match from.0.write(&value[sent..]) {
                Ok(count) => (sent, refusals) = (sent + count, 0),
                Err(_) => refusals += usize::from(stage.proxy.stats().bytes_held == HELD_BYTES_MAX),
            }
            std::thread::sleep(Duration::from_millis(1));
            assert!(stage.proxy.stats().bytes_held <= HELD_BYTES_MAX);
            assert!(sent < value.len(), "32 MiB went somewhere");
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", stage.proxy.stats());
        }
        from.0.set_nonblocking(false).unwrap();
        let reader = std::thread::spawn(move || {
            let mut found = vec![0; 32 << 20];
            to.0.read_exact(&mut found).unwrap();
            found
        });
        from.0.write_all(&value[sent..]).unwrap();
        assert!(reader.join().unwrap() == value);

        // Nor is what is delayed.
        way.delay(AGES);
        from.0.set_nonblocking(true).unwrap();
        while from.0.write(&value).is_ok() {}
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == HELD_BYTES_MAX));
    });
}

#[test]
fn a_relay_that_writes_before_it_reads_does_not_read() {
    both_ways(|stage, server| {
        stage.proxy.new_connections().socket_buffers(64 * 1024).read_only_when_written();
        let ([mut from, mut to], _) = stage.towards(server);
        let value = noise(1 << 20).repeat(16);
        let writer = std::thread::spawn(move || {
            to.0.write_all(&value).unwrap();
            (to, value)
        });
        assert!(stage.proxy.wait_for(|stats| stats.bytes_held == HELD_BYTES_MAX));
        let passed = |stats: ProxyStats| if server { stats.bytes_to_server } else { stats.bytes_to_client };
        from.send("behind");
        // Turns go by.
        let ([mut other, mut other_to], _) = stage.towards(server);
        other.send("hello");
        other_to.expect("hello");
        assert_eq!(passed(stage.proxy.stats()), 5);
        let mut found = vec![0; 16 << 20];
        from.0.read_exact(&mut found).unwrap();
        let (mut to, value) = writer.join().unwrap();
        assert!(found == value);
        to.expect("behind");
    });
}

// A turn sends at most so many pieces; when the last of them is all there is, the end that follows must not be forgotten.
#[test]
fn the_end_follows_the_last_piece() {
    both_ways(|stage, server| {
        for length in [64, 65, 66, 129, 193] {
            let ([mut from, mut to], way) = stage.towards(server);
            way.split_with_pause(1, AGES);
            from.0.write_all(&noise(length)).unwrap();
            from.0.shutdown(Shutdown::Write).unwrap();
            assert!(stage.proxy.wait_for(|stats| stats.bytes_held == length - 1));
            // So that the end is read, too.
            std::thread::sleep(TICK);
            way.split(1);
            let mut found = Vec::new();
            to.0.read_to_end(&mut found).unwrap();
            assert!(found == noise(length));
        }
    });
}
