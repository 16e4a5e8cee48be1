//! How fast the server answers pipelined commands: `cargo run --release --example throughput`.
//!
//! One connection, 1000 commands per write. The client only counts reply bytes, so most of the time is the server's and
//! the kernel's.

use respiral_testkit::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const PIPELINE: usize = 1000;
const ROUNDS: usize = 2000;

fn main() -> std::io::Result<()> {
    let server = Server::start()?;
    let value = "x".repeat(64);
    server.execute(["SET", "key:000001", &value]);
    // A counter that stays at 16 digits makes every reply equally long.
    server.execute(["SET", "counter", "1000000000000000"]);
    for (name, command, reply_bytes) in [
        ("GET", "*2\r\n$3\r\nGET\r\n$10\r\nkey:000001\r\n".to_owned(), 5 + 64 + 2),
        ("SET", format!("*3\r\n$3\r\nSET\r\n$10\r\nkey:000001\r\n$64\r\n{value}\r\n"), 5),
        ("INCR", "*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n".to_owned(), 19),
    ] {
        let batch = command.repeat(PIPELINE);
        let mut client = TcpStream::connect(server.addr())?;
        let mut reader = client.try_clone()?;
        let start = Instant::now();
        std::thread::scope(|scope| {
            let sender =
                scope.spawn(move || (0..ROUNDS).try_for_each(|_| client.write_all(batch.as_bytes())));
            let mut buffer = vec![0; 256 * 1024];
            let mut left = PIPELINE * ROUNDS * reply_bytes;
            while left > 0 {
                left -= reader.read(&mut buffer)?;
            }
            sender.join().unwrap_or(Ok(()))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{name:5} {:6.2} million per second", (PIPELINE * ROUNDS) as f64 / seconds / 1e6);
    }
    Ok(())
}
