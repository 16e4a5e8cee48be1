//! A blocking connection of a few lines, so that a test can ask a server without the client under test.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long one connect, read or write may take when a test asks.
pub(crate) const CLI_TIMEOUT: Duration = Duration::from_secs(5);

/// A RESP2 connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects, and authenticates as the default user when there is a password. No connect, read or write
    /// takes longer than `timeout`.
    pub(crate) fn open(addr: SocketAddr, password: Option<&str>, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let mut connection = Self { stream: BufReader::new(stream) };
        if let Some(password) = password {
            let reply = connection.call(&["AUTH", password])?;
            if reply != "OK" {
                return Err(io::Error::other(format!("AUTH: {reply}")));
            }
        }
        Ok(connection)
    }

    /// Sends one command and reads its reply as text.
    pub(crate) fn call(&mut self, arguments: &[&str]) -> io::Result<String> {
        self.stream.get_mut().write_all(&encode(arguments))?;
        read_reply(&mut self.stream)
    }

    /// Closes, and waits until the server closed its side too: it no longer lists this connection then.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.stream.get_ref().shutdown(Shutdown::Write)?;
        io::copy(&mut self.stream, &mut io::sink()).map(|_| ())
    }
}

fn encode(arguments: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n{argument}\r\n", argument.len()).as_bytes());
    }
    bytes
}

/// One reply as text: elements of an array on lines of their own, nil as `(nil)`, an error with `(error) `
/// before it.
fn read_reply(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("reply line {line:?}"));
    let (kind, rest) = line.split_at_checked(1).ok_or_else(malformed)?;
    let length = || rest.parse::<i64>().map_err(|_| malformed());
    match kind {
        "+" | ":" => Ok(rest.to_owned()),
        "-" => Ok(format!("(error) {rest}")),
        "$" | "*" if length()? < 0 => Ok("(nil)".to_owned()),
        "$" => {
            let length = usize::try_from(length()?).map_err(io::Error::other)?;
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => {
            let elements: Vec<_> = (0..length()?).map(|_| read_reply(from)).collect::<io::Result<_>>()?;
            Ok(elements.join("\n"))
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<String> {
        let text = read_reply(&mut bytes)?;
        assert!(bytes.is_empty(), "bytes after the reply");
        Ok(text)
    }

    #[test]
    fn every_kind_of_reply_is_text() {
        assert_eq!(read(b"+OK\r\n").unwrap(), "OK");
        assert_eq!(read(b":-7\r\n").unwrap(), "-7");
        assert_eq!(read(b"-ERR no\r\n").unwrap(), "(error) ERR no");
        assert_eq!(read(b"$4\r\na\r\nb\r\n").unwrap(), "a\r\nb");
        assert_eq!(read(b"$-1\r\n").unwrap(), "(nil)");
        assert_eq!(read(b"*-1\r\n").unwrap(), "(nil)");
        assert_eq!(read(b"*0\r\n").unwrap(), "");
        let nested = b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n$-1\r\n";
        assert_eq!(read(nested).unwrap(), "a\n1\n2\n(nil)");
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [&b""[..], b"+OK", b"\r\n", b"?\r\n", b"$x\r\n", b"$3\r\nab"] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
