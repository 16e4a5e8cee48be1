//! Sockets, made the same way for both engines.

use crate::io::{Address, SocketOptions};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::io;
use std::net::Shutdown;

/// A non-blocking, close-on-exec socket with its options set, and the address to connect it to.
pub(super) fn create(address: &Address, options: &SocketOptions) -> io::Result<(Socket, SockAddr)> {
    match address {
        Address::Tcp(peer) => {
            let peer = SockAddr::from(*peer);
            let socket = Socket::new(peer.domain(), Type::STREAM.nonblocking(), None)?;
            socket.set_tcp_nodelay(true)?;
            if let Some((idle, interval, probes)) = options.keepalive {
                let mut keepalive = TcpKeepalive::new().with_time(idle);
                if let Some(interval) = interval {
                    keepalive = keepalive.with_interval(interval);
                }
                if let Some(probes) = probes {
                    keepalive = keepalive.with_retries(probes);
                }
                socket.set_tcp_keepalive(&keepalive)?;
            }
            Ok((socket, peer))
        }
        Address::Unix(path) => {
            let peer = SockAddr::unix(path)?;
            Ok((Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?, peer))
        }
    }
}

/// Ends both directions and closes: by system calls, never as operations of a ring (they would start a kernel thread,
/// H30), and only when no operation is left on the socket (H29).
pub(super) fn close(socket: Socket) {
    // Fails when the peer has already reset the connection, or was never connected: nothing is left to end then.
    let _ = socket.shutdown(Shutdown::Both);
}
