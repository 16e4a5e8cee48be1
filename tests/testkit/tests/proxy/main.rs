//! The proxy between two plain sockets: what passes, what does not, and to the byte where.

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod flows;

use common::Client;
use respiral_testkit::{Connections, Hangup, Proxy};
use std::net::{TcpListener, TcpStream};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);
const AGES: Duration = Duration::from_secs(3600);

/// One test counts descriptors and must be alone.
static DESCRIPTORS: RwLock<()> = RwLock::new(());

/// A proxy before a listener that the test serves by hand.
struct Stage {
    proxy: Proxy,
    server: TcpListener,
}

impl Stage {
    fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { proxy: Proxy::start(server.local_addr().unwrap()).unwrap(), server }
    }

    fn dial(&self) -> Client {
        Client::new(TcpStream::connect(self.proxy.addr()).unwrap())
    }

    /// Both ends of a new connection: the client's and the server's.
    fn connect(&self) -> [Client; 2] {
        let client = self.dial();
        [client, Client::new(self.server.accept().unwrap().0)]
    }

    /// Both ends, the one that sends first, and the connection narrowed to what it sends.
    fn towards(&self, server: bool) -> ([Client; 2], Connections<'_, Proxy>) {
        let mut ends = self.connect();
        let connection = self.proxy.connection(self.proxy.connections_accepted());
        if server {
            return (ends, connection.to_server());
        }
        ends.reverse();
        (ends, connection.to_client())
    }
}

/// Runs a test beside others, for each direction.
fn both_ways(test: impl Fn(&Stage, bool)) {
    let _beside = DESCRIPTORS.read().unwrap_or_else(PoisonError::into_inner);
    for server in [true, false] {
        test(&Stage::new(), server);
    }
}

fn beside(test: impl FnOnce(&Stage)) {
    let _beside = DESCRIPTORS.read().unwrap_or_else(PoisonError::into_inner);
    test(&Stage::new());
}

fn expect_hangup(end: &mut Client, how: Hangup) {
    match how {
        Hangup::Fin => end.expect_end(),
        Hangup::Reset => end.expect_reset(),
    }
}

#[test]
fn bytes_pass_and_are_counted() {
    beside(|stage| {
        let [mut client, mut server] = stage.connect();
        client.send("to the server");
        server.expect("to the server");
        server.send("back");
        client.expect("back");
        assert!(stage.proxy.wait_for(|stats| stats.bytes_to_server == 13 && stats.bytes_to_client == 4));
        let stats = stage.proxy.stats();
        assert_eq!((stats.connections_accepted, stats.connections_open), (1, 1));
        assert_eq!((stats.bytes_held, stats.bytes_discarded, stats.connects_failed), (0, 0, 0));
        drop((client, server));
        assert!(stage.proxy.wait_for(|stats| stats.connections_open == 0));
        assert_eq!(stage.proxy.stats().bytes_to_server, 13, "what is gone still counts");
    });
}
