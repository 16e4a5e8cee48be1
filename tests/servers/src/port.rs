//! Ports that stay ours.
//!
//! "Bind to port 0, close, start the server there" loses twice: another test may pick the port before the
//! server binds it, and after a kill any outgoing connection may get it as its own end, so the server
//! cannot come back. Hence a port comes from below the range the kernel hands out, and is reserved, for as
//! long as it is held, by a socket in the abstract namespace: visible to exactly the processes that share
//! our ports, and freed by the kernel when its holder dies.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Where client ports come from. The cluster bus lies 10,000 above and so meets neither these ports nor
/// the kernel's ephemeral ones (from 32,768).
const FIRST: u16 = 11_000;
const COUNT: u16 = 9_000;
const CLUSTER_BUS_OFFSET: u16 = 10_000;

/// A port on 127.0.0.1 that no other holder of a `Port` has.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _reservation: UnixListener,
}

impl Port {
    /// Reserves a port that nobody listens on now, and whose cluster bus port is free too.
    pub(crate) fn reserve() -> io::Result<Self> {
        // Each process, and each call, starts somewhere else: neighbours rarely try the same ports.
        let start = RandomState::new().hash_one(std::process::id());
        (0..u64::from(COUNT))
            .map(|step| FIRST + (start.wrapping_add(step) % u64::from(COUNT)) as u16)
            .find_map(Self::try_reserve)
            .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "every test port is in use"))
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("respiral-test-port-{number}")).ok()?;
        let reservation = UnixListener::bind_addr(&name).ok()?;
        let is_free = |number| TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok();
        (is_free(number) && is_free(number + CLUSTER_BUS_OFFSET))
            .then_some(Self { number, _reservation: reservation })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_refused_until_it_is_dropped() {
        let port = Port::reserve().unwrap();
        let number = port.number();
        assert!(Port::try_reserve(number).is_none());
        drop(port);
        assert!(Port::try_reserve(number).is_some());
    }

    #[test]
    fn a_port_a_stranger_listens_on_is_refused() {
        let port = Port::reserve().unwrap();
        let number = port.number();
        drop(port);
        let _stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        assert!(Port::try_reserve(number).is_none());
    }
}
