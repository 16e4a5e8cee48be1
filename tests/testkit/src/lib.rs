//! A Redis-like server inside the test's own process, with faults on demand, and an allocator that counts.
//!
//! It is for tests of Redis clients, and for tests of services that use one: no server to install, no container, no port
//! to agree upon, and every failure that production has can be produced with one call.
//!
//! ```
//! use respiral_testkit::Server;
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::start()?; // a free port, a thread of its own; gone when dropped
//! let mut client = TcpStream::connect(server.addr())?; // your service would take server.url()
//!
//! // It has the everyday commands, with the real server's error texts.
//! client.write_all(b"SET k v\r\nINCR k\r\n")?;
//! let mut reply = [0; 51];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"+OK\r\n-ERR value is not an integer or out of range\r\n");
//!
//! // It does what a test tells it: the next GET is withheld, until the test lets it go.
//! server.on("GET").times(1).withhold();
//! client.write_all(b"GET k\r\n")?;
//! assert!(server.wait_for(|stats| stats.withheld == 1));
//! server.release();
//! let mut reply = [0; 7];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"$1\r\nv\r\n");
//!
//! // And it fails when asked to.
//! server.open_connections().close();
//! assert_eq!(client.read(&mut reply)?, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # What it offers
//!
//! - **Data.** Strings, counters, keys with times to live, hashes, lists, sets and sorted sets in 16 databases, in RESP2
//!   and RESP3; `HELLO`, `AUTH`, `CLIENT`, `INFO` and what else a client asks when it connects. [`Server::execute`] looks
//!   at the data past the network; [`Server::advance_clock`] lets keys expire without waiting.
//! - **Answers.** [`Server::on`] writes rules, [`Server::script`] takes a closure: raw bytes, errors, late, withheld or
//!   missing replies, and ends of the connection. [`Server::loading`] and [`Server::deny`] are the common ones.
//! - **Faults.** [`Connections`] splits, delays, slows, stalls, cuts, closes and resets; [`Server::accept`] refuses clients
//!   or leaves them waiting; [`Server::stop`] and [`Server::restart`] take the whole server away and bring it back.
//! - **A proxy.** [`Proxy`] does that before any server, a real one too, in each direction by itself, and throws bytes away
//!   or changes them.
//! - **Evidence.** [`Server::commands`] says what arrived and on which connection, [`Server::stats`] how much, and
//!   [`Server::wait_for`] waits for it, so that tests need no sleeps. [`alloc_count`] counts allocations.
//!
//! # What can go wrong for a service
//!
//! | in production | in a test |
//! |---|---|
//! | an error: overloaded, loading, no permission | `server.on("GET").times(1).reply_error("OOM …")`, [`loading`](Server::loading), [`deny`](Server::deny) |
//! | a slow command; a reply after the deadline | `server.on("GET").delay(…)`; [`withhold`](Rule::withhold), then [`release`](Server::release) |
//! | another type, or nonsense, where a value was expected | [`reply_raw`](Rule::reply_raw) |
//! | a key expires | [`advance_clock`](Server::advance_clock) |
//! | connections end | `server.open_connections().close()`, or `.reset()`; in the middle of a reply: `.cut_after(…)` |
//! | the server restarts, with its data or without | [`stop`](Server::stop), [`restart`](Server::restart), [`restart_empty`](Server::restart_empty) |
//! | the server hangs | `server.all_connections().stall()`, then `.resume()` |
//! | nobody can connect | [`accept`](Server::accept) with [`Accept::Refuse`], or what else it offers |
//! | a far or a slow network | [`delay`](Connections::delay), [`rate`](Connections::rate), [`split`](Connections::split) |
//! | a network that falls silent (half-open) | `proxy.open_connections().stall()`; one way: `.to_client().stall()` |
//! | a failover: the address leads elsewhere | [`Proxy::retarget`] |
//! | a broken peer: a wrong byte | [`corrupt_after`](Connections::corrupt_after) |
//!
//! Complete examples, to be copied, are the files `tests/service.rs` of respiral's adapters: a cache under monoio (errors,
//! silence), a limiter under tokio (a server that goes away and returns), reservations under tokio-uring (the proxy).
//!
//! Two habits make such tests reliable. Wait for what the server saw ([`Server::wait_for`]), not for time to pass; inside an
//! async test look at [`Server::stats`] and let other tasks run meanwhile, since the client lives on the same thread. And
//! after an end of the connection
//! expect the first call to fail or to succeed: it may have been on its way; assert what holds in both cases.
//!
//! # What it is not
//!
//! It knows the commands that respiral has as methods, and those of connections; others are unknown to it. So no streams,
//! no geo, no bitmaps, no old forms such as ZRANGEBYSCORE, no transactions, no pub/sub, no scripts, no cluster, no persistence; their
//! replies can be scripted. Hash fields and set
//! members come in byte order, so that a test does not depend on what the real server leaves open. Inline commands know no
//! quotes. `INCRBYFLOAT` rounds to 16 digits instead of adding in extended precision. It runs on Linux.

#![warn(missing_docs)]
#![deny(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

#[allow(unsafe_code)]
pub mod alloc_count;
mod builder;
mod connection;
mod data;
mod event_loop;
mod faults;
mod listener;
mod outbox;
mod proxy;
mod record;
mod reply;
mod request;
mod rules;
mod server;
mod session;
mod state;

pub use alloc_count::CountingAllocator;
pub use builder::Builder;
pub use faults::{Connections, Corrupt, Hangup};
pub use listener::Accept;
pub use proxy::{Proxy, ProxyStats};
pub use record::{Recorded, Request};
pub use rules::{Action, Rule, RuleId};
pub use server::Server;
pub use state::Stats;
