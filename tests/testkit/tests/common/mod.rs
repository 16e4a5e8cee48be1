//! A client that is nothing but a socket: what it sends and receives is exactly what the test says.

#![expect(clippy::unwrap_used, reason = "this is test code, though clippy sees a plain module")]

use respiral_testkit::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A hang becomes a failure; no test waits for this in the good case.
const HANG: Duration = Duration::from_secs(30);

pub struct Client(pub TcpStream);

#[allow(dead_code, reason = "each test file uses some of it")]
impl Client {
    pub fn connect(server: &Server) -> Self {
        Self::new(TcpStream::connect(server.addr()).unwrap())
    }

    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.set_write_timeout(Some(HANG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    pub fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).unwrap();
    }

    /// Reads exactly what is expected.
    #[track_caller]
    pub fn expect(&mut self, bytes: &str) {
        let mut found = vec![0; bytes.len()];
        let result = self.0.read_exact(&mut found);
        assert!(
            result.is_ok(),
            "{result:?} instead of {bytes:?}; so far {:?}",
            String::from_utf8_lossy(&found)
        );
        assert_eq!(String::from_utf8_lossy(&found), bytes);
    }

    #[track_caller]
    pub fn ask(&mut self, bytes: &str, answer: &str) {
        self.send(bytes);
        self.expect(answer);
    }

    /// Nothing but the end of the stream is left.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        assert_eq!(self.0.read_to_end(&mut rest).map_err(|error| error.kind()), Ok(0), "{rest:?}");
    }

    #[track_caller]
    pub fn expect_reset(&mut self) {
        let mut rest = Vec::new();
        let result = self.0.read_to_end(&mut rest).map_err(|error| error.kind());
        assert_eq!(result, Err(ErrorKind::ConnectionReset), "{rest:?}");
    }

    /// Nothing has arrived. Meaningful only when something that would have come first has been awaited.
    #[track_caller]
    pub fn expect_silence(&mut self) {
        self.0.set_nonblocking(true).unwrap();
        let found = self.0.read(&mut [0; 16]).map_err(|error| error.kind());
        self.0.set_nonblocking(false).unwrap();
        assert_eq!(found, Err(ErrorKind::WouldBlock));
    }
}
