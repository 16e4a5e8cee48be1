//! The address that the server listens at, kept over a stop.
//!
//! **Problem.** "The server is gone for a while and comes back on the same port" needs connects to be refused in between,
//! while nobody else may take the port.
//!
//! **Idea.** When the server stops, a socket that is bound but does not listen takes the listener's place; connects to it
//! are refused. To come back, it listens.
//!
//! **Invariant.** From the first start until the drop, the port belongs to one of the two sockets. A Unix path exists only
//! while the server listens.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

const BACKLOG: i32 = 4096;

/// Where a server is found.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

enum State {
    Listening(OwnedFd),
    Parked(OwnedFd),
    Absent,
}

/// The listening socket, or what stands for it.
pub(crate) struct Listener {
    place: Place,
    state: State,
    buffer_bytes: Option<usize>,
}

impl Listener {
    /// Binds and listens. `buffer_bytes` is inherited by every accepted socket, before any window is offered.
    pub(crate) fn open(mut place: Place, buffer_bytes: Option<usize>) -> io::Result<Self> {
        let socket = bind(&place, buffer_bytes)?;
        net::listen(&socket, BACKLOG)?;
        if let Place::Tcp(addr) = &mut place {
            *addr = SocketAddr::try_from(net::getsockname(&socket)?)?;
        }
        Ok(Self { place, state: State::Listening(socket), buffer_bytes })
    }

    /// The place with its real port.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Listening(socket) => Some(socket.as_fd()),
            State::Parked(_) | State::Absent => None,
        }
    }

    /// Connects are refused from now on; those that wait in the backlog are reset.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if self.socket().is_none() {
            return Ok(());
        }
        self.state = State::Absent;
        match &self.place {
            Place::Tcp(_) => self.state = State::Parked(bind(&self.place, self.buffer_bytes)?),
            Place::Unix(path) => std::fs::remove_file(path)?,
        }
        Ok(())
    }

    /// Listens again; does nothing when it does already.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        let socket = match std::mem::replace(&mut self.state, State::Absent) {
            State::Listening(socket) | State::Parked(socket) => socket,
            State::Absent => bind(&self.place, self.buffer_bytes)?,
        };
        net::listen(&socket, BACKLOG)?;
        self.state = State::Listening(socket);
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let (Place::Unix(path), State::Listening(_)) = (&self.place, &self.state) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bind(place: &Place, buffer_bytes: Option<usize>) -> io::Result<OwnedFd> {
    let family = match place {
        Place::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
        Place::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        Place::Unix(_) => AddressFamily::UNIX,
    };
    let socket =
        net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if let Some(bytes) = buffer_bytes {
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    match place {
        Place::Tcp(addr) => {
            // Old connections of the port may be in TIME_WAIT; without this the port could not be bound again.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, addr)?;
        }
        Place::Unix(path) => net::bind(&socket, &net::SocketAddrUnix::new(path.as_path())?)?,
    }
    Ok(socket)
}
