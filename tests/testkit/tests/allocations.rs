//! The counting allocator, and what it says about the server itself.

use respiral_testkit::Server;
use respiral_testkit::alloc_count::{self, CountingAllocator, Counts};
use std::io::{Read, Write};
use std::net::TcpStream;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn counts_per_thread() {
    let (counts, boxed) = alloc_count::measure_with(|| Box::new([0_u8; 100]));
    assert_eq!(counts, Counts { allocations: 1, bytes_allocated: 100, ..Counts::default() });
    assert_eq!(counts.bytes_live(), 100);
    let freed = alloc_count::measure(|| drop(boxed));
    assert_eq!(freed, Counts { deallocations: 1, bytes_deallocated: 100, ..Counts::default() });
    let other = alloc_count::measure(|| ());
    assert_eq!(other, Counts::default());
    std::thread::spawn(|| {
        let before = alloc_count::snapshot();
        drop(vec![1, 2, 3]);
        assert_eq!((alloc_count::snapshot() - before).allocations, 1);
    })
    .join()
    .unwrap();
    let mut grows = Vec::<u8>::with_capacity(10);
    let grown = alloc_count::measure(|| grows.reserve_exact(1000));
    assert_eq!((grown.allocations, grown.deallocations, grown.bytes_live()), (1, 1, 990));
    assert!(alloc_count::total().allocations >= counts.allocations);
}

/// One warm-up batch; then ten thousand commands may allocate a few times for buffers, not once each.
#[test]
fn the_server_does_not_allocate_per_command() {
    let server = Server::start().unwrap();
    let mut client = TcpStream::connect(server.addr()).unwrap();
    let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
        .repeat(100);
    let mut round = |reply_bytes: usize| {
        client.write_all(&request).unwrap();
        client.read_exact(&mut vec![0; reply_bytes]).unwrap();
    };
    // INCR answers with one digit first: nine times, then 90 and more with two and three.
    round(100 * (5 + 7) + 9 * 4 + 90 * 5 + 6);
    let before = alloc_count::total();
    for _ in 0..8 {
        round(100 * (5 + 7 + 6));
    }
    let counts = alloc_count::total() - before;
    assert!(counts.allocations < 240, "{counts:?} for 2400 commands");
}
