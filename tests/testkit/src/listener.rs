//! The address that clients connect to, kept over a stop.
//!
//! **Problem.** "The server is gone for a while and comes back on the same port" needs connects to be refused in between,
//! while nobody else may take the port.
//!
//! **Idea.** When the server stops, a socket that is bound but does not listen takes the listener's place; connects to it
//! are refused. To come back, it listens.
//!
//! **Invariant.** From the first start until the drop, the port belongs to one of the two sockets. A Unix path exists only
//! while the server listens. After each call, epoll watches what is to be accepted.

use crate::Hangup;
use crate::event_loop::LISTENER;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

const BACKLOG: i32 = 4096;

/// What happens to a client that connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// It is served.
    #[default]
    Serve,
    /// It is accepted; the server never reads and never answers, until the connection is
    /// [resumed](crate::Connections::resume).
    Silent,
    /// It stays in the kernel's backlog: connected from the client's view, never accepted from the server's.
    Backlog,
    /// It is accepted and ended at once.
    HangUp(Hangup),
    /// It is refused by the kernel, as where nobody listens. Connections that exist go on.
    Refuse,
}

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
    accept: Accept,
    closed: bool,
    epoll: Option<Arc<OwnedFd>>,
}

impl Listener {
    /// Binds and listens. `buffer_bytes` is inherited by every accepted socket, before any window is offered.
    pub(crate) fn open(place: Place, buffer_bytes: Option<usize>) -> io::Result<Self> {
        let (state, accept) = (State::Absent, Accept::Serve);
        let mut listener = Self { place, state, buffer_bytes, accept, closed: false, epoll: None };
        let socket = listener.listen()?;
        let local = net::getsockname(socket)?;
        if let Place::Tcp(addr) = &mut listener.place {
            *addr = SocketAddr::try_from(local)?;
        }
        Ok(listener)
    }

    /// The place with its real port.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// What happens to a client that connects now.
    pub(crate) fn accept(&self) -> Accept {
        self.accept
    }

    /// Tells this epoll of clients that wait, from now on.
    pub(crate) fn watch(&mut self, epoll: Arc<OwnedFd>) -> io::Result<()> {
        self.epoll = Some(epoll);
        self.settle()
    }

    pub(crate) fn set_accept(&mut self, accept: Accept) -> io::Result<()> {
        self.accept = accept;
        self.settle()
    }

    /// Connects are refused from now on; those that wait in the backlog are reset.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.closed = true;
        self.settle()
    }

    /// Listens again; does nothing when it does already.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.closed = false;
        self.settle()
    }

    /// The next client that waits, and its address.
    pub(crate) fn next(&self) -> Option<(OwnedFd, Option<SocketAddr>)> {
        let State::Listening(listening) = &self.state else { return None };
        loop {
            match net::acceptfrom_with(listening, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok((socket, peer)) => {
                    return Some((socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok())));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return None,
            }
        }
    }

    /// Makes the socket what it should be.
    fn settle(&mut self) -> io::Result<()> {
        if self.closed || self.accept == Accept::Refuse {
            return self.park();
        }
        let interest = if self.accept == Accept::Backlog { EventFlags::empty() } else { EventFlags::IN };
        let epoll = self.epoll.clone();
        let socket = self.listen()?;
        let Some(epoll) = epoll else { return Ok(()) };
        match epoll::add(&*epoll, socket, EventData::new_u64(LISTENER), interest) {
            Err(Errno::EXIST) => epoll::modify(&*epoll, socket, EventData::new_u64(LISTENER), interest)?,
            added => added?,
        }
        Ok(())
    }

    fn park(&mut self) -> io::Result<()> {
        let State::Listening(_) = self.state else { return Ok(()) };
        self.state = State::Absent;
        match &self.place {
            Place::Tcp(_) => self.state = State::Parked(bind(&self.place, self.buffer_bytes)?),
            Place::Unix(path) => std::fs::remove_file(path)?,
        }
        Ok(())
    }

    fn listen(&mut self) -> io::Result<BorrowedFd<'_>> {
        let socket = match std::mem::replace(&mut self.state, State::Absent) {
            State::Listening(socket) | State::Parked(socket) => socket,
            State::Absent => bind(&self.place, self.buffer_bytes)?,
        };
        net::listen(&socket, BACKLOG)?;
        self.state = State::Listening(socket);
        let State::Listening(socket) = &self.state else { unreachable!("it was just set") };
        Ok(socket.as_fd())
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
