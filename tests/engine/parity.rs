//! H41: both engines tell the same story. One script of operations, with one peer that plays its part, runs on each; what
//! is told of each connection must be equal: which completions and in which order, how many bytes and which, how sends
//! ended. How bytes are cut into segments, and whether a reply or the end of its request's send is told first, is left to
//! the kernel. (Where a send is cut differs too; that it is told exactly is checked against the peer.)

use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use respiral::io::{Address, ConnectionId, SocketOptions};
use socket2::SockRef;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// More than two sockets hold.
const MUCH: usize = 16 << 20;

/// Reads `ask` bytes, then writes `answer` bytes of the pattern; gives the socket back.
fn serve(mut peer: TcpStream, ask: usize, answer: usize) -> std::thread::JoinHandle<TcpStream> {
    in_thread(move || {
        peer.read_exact(&mut vec![0; ask]).unwrap();
        peer.write_all(&pattern(0, answer)).unwrap();
        peer
    })
}

/// What is the same on both engines, a line per connection.
fn story(host: &Host) -> Vec<String> {
    let line = |(id, seen): (&ConnectionId, &Seen)| {
        let mut order: Vec<_> = host
            .order
            .iter()
            .filter(|(of, what)| of == id && *what != "Sent")
            .map(|(_, what)| *what)
            .collect();
        order.dedup();
        let mut hash = DefaultHasher::new();
        seen.received.hash(&mut hash);
        // Less than all of a long one: how much is the kernel's choice.
        let sent = seen
            .sent
            .iter()
            .map(|bytes| if (2..MUCH).contains(bytes) { "some".into() } else { bytes.to_string() });
        let sent: Vec<_> = sent.collect();
        // Of a send and a receive that meet a reset one hears of it, the other of a broken pipe or an end.
        let is_cut = sent.iter().any(|sent| sent == "some");
        let failed =
            seen.failed.as_ref().map(|told| if is_cut { "lost".into() } else { format!("{told:?}") });
        let bytes = seen.received.len();
        format!("{id:?} {order:?}, received {bytes} ({:x}), sent {sent:?}, failed {failed:?}", hash.finish())
    };
    host.seen.iter().map(line).collect()
}

fn script(kind: EngineKind, much: &[u8]) -> Vec<String> {
    let (listener, address) = listen();
    let mut host = Host::with(&options(kind).buffer_count(8).buffer_size(4096));
    let [echo, refused, missing, served, reset, stuck, large, held, again, unknown] =
        [id(0, 0), id(1, 0), id(2, 0), id(3, 0), id(4, 0), id(5, 0), id(6, 0), id(7, 0), id(0, 2), id(9, 9)];
    let owed = |host: &Host, id: ConnectionId| host.seen[&id].owed;

    // Both ways.
    let peer = host.pair(echo, &listener);
    let peer = serve(peer, MUCH, 100_000);
    host.send(echo, transmit(much, 1 << 20));
    host.until(|host| host.seen[&echo].received.len() == 100_000 && owed(host, echo) == 0);

    // What cannot be connected: nobody listens, no such path, a place that is taken.
    let nobody = listen().1;
    host.connect(refused, nobody);
    host.connect_to(missing, Address::Unix(Path::new("/nowhere/at/all").into()), SocketOptions::default());
    let busy = id(0, 1);
    host.connect(busy, address);
    host.until(|host| [refused, missing, busy].iter().all(|id| host.seen[id].failed.is_some()));
    host.close(refused);
    host.close(missing);
    host.until(|host| host.seen[&refused].closed && host.seen[&missing].closed);

    // The peer answers and closes; ours follows.
    let peer_served = serve(host.pair(served, &listener), MUCH, 50_000);
    host.send(served, transmit(much, 64 * 1024));
    drop(peer_served.join_while(&mut host));
    host.until(|host| host.seen[&served].failed.is_some());
    host.close(served);

    // The peer resets the connection in the middle of a send.
    let peer_reset = host.pair(reset, &listener);
    host.send(reset, transmit(&much[1..], 1 << 20));
    host.idle(10 * MS);
    SockRef::from(&peer_reset).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer_reset);
    host.until(|host| host.seen[&reset].failed.is_some() && owed(host, reset) == 0);
    host.close(reset);

    // Closed by us in the middle of a send: the peer has exactly what is told.
    let mut peer_stuck = host.pair(stuck, &listener);
    host.send(stuck, transmit(&much[1..], 1 << 20));
    host.idle(10 * MS);
    host.close(stuck);
    host.until(|host| host.seen[&stuck].closed);
    let mut heard = Vec::new();
    peer_stuck.read_to_end(&mut heard).unwrap();
    assert!(heard == much[1..][..host.seen[&stuck].sent[0]]);

    // Into blocks, as far as there are some.
    let peer_large = serve(host.pair(large, &listener), 1, 3 << 20);
    host.send(large, transmit(b"x", 16));
    host.fill(large, 1 << 20);
    host.until(|host| !host.seen[&large].filling);
    host.fill(large, 1 << 20);
    host.until(|host| host.seen[&large].received.len() == 3 << 20);

    // All buffers are kept for a while.
    host.hold = true;
    let peer_held = serve(host.pair(held, &listener), 1, 100_000);
    host.send(held, transmit(b"x", 16));
    host.until(|host| host.held.len() == 8);
    host.idle(10 * MS);
    assert_eq!(host.held.len(), 8);
    host.hold = false;
    host.held.clear();
    host.until(|host| host.seen[&held].received.len() == 100_000);

    // The place of the first again; operations on what is not there; the end, with a send on its way.
    host.close(echo);
    host.until(|host| host.seen[&echo].closed);
    let peer_again = host.pair(again, &listener);
    host.seen.insert(unknown, Seen::default());
    host.send(unknown, transmit(b"x", 16));
    host.until(|host| owed(host, unknown) == 0);
    host.close(unknown);
    host.until(|host| host.seen[&unknown].closed);
    host.send(again, transmit(&much[1..], 1 << 20));
    host.idle(10 * MS);
    let mut told = Vec::new();
    host.engine.close(&mut told);
    host.note(told);
    // (Nobody answers for a place that was taken: it never was a connection.)
    assert!(host.seen.iter().all(|(id, seen)| seen.closed || *id == busy));
    drop((peer.join().unwrap(), peer_large.join().unwrap(), peer_held.join().unwrap(), peer_again));
    story(&host)
}

/// Joins a peer's thread while the engine goes on.
trait JoinWhile<T> {
    fn join_while(self, host: &mut Host) -> T;
}

impl<T> JoinWhile<T> for std::thread::JoinHandle<T> {
    fn join_while(self, host: &mut Host) -> T {
        while !self.is_finished() {
            host.idle(MS);
        }
        self.join().unwrap()
    }
}

#[test]
fn h41_both_engines_tell_the_same() {
    let _alone = alone();
    let much = pattern(0, MUCH);
    let (uring, epoll) = (script(EngineKind::Uring, &much), script(EngineKind::Epoll, &much));
    assert_eq!(uring.len(), 11);
    assert_eq!(uring, epoll, "io_uring, then epoll");
    println!("{}", uring.join("\n"));
}
