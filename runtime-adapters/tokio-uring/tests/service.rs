//! A service of your own under tokio-uring, tested with the kit's proxy: reservations, and a network that falls silent.
//!
//! What it has to prove: no call hangs, nothing is reserved twice, and the service tells "not done" from "do not know". The
//! proxy works before a real server as well: give it that one's address.

use respiral_testkit::{Proxy, Server};
use respiral_tokio_uring::{Client, ConnectOptions, Delivery};
use std::time::Duration;

#[derive(Debug, PartialEq)]
enum Reservation {
    Done,
    SoldOut,
    /// It may have been made. Only a look at the stock can tell; another try could take two.
    Unknown,
    NotDone,
}

/// The service: takes one out of stock.
async fn reserve(client: &Client, item: &str) -> Reservation {
    const TAKE: &str = "DECR";
    match client.cmd::<i64>(TAKE).arg(item).timeout(Duration::from_millis(200)).await {
        Ok(left) if left >= 0 => Reservation::Done,
        Ok(_) => Reservation::SoldOut,
        Err(error) if error.delivery() == Delivery::NotExecuted => Reservation::NotDone,
        Err(error) => {
            eprintln!("{error}");
            Reservation::Unknown
        }
    }
}

#[test]
fn the_network_falls_silent() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    server.execute(["SET", "seats", "5"]);
    tokio_uring::start(async {
        // A connection that owes replies and is silent for this long is given up.
        let options = ConnectOptions::try_from(proxy.url()).unwrap();
        let options = options.idle_read_timeout(Duration::from_millis(300));
        let client = respiral_tokio_uring::connect(options).await.unwrap();
        assert_eq!(reserve(&client, "seats").await, Reservation::Done);

        // Half-open: requests arrive, replies do not, and nobody says so. It was made, and is not made again.
        proxy.open_connections().to_client().stall();
        assert_eq!(reserve(&client, "seats").await, Reservation::Unknown);
        assert_eq!(server.execute(["GET", "seats"]), b"$1\r\n3\r\n");

        // The client gives the connection up; the next one works.
        while proxy.connections_accepted() == 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while reserve(&client, "seats").await != Reservation::Done {}
        assert_eq!(server.execute(["GET", "seats"]), b"$1\r\n2\r\n");

        // Nobody listens any more. The call that meets the end of the connection cannot know; those behind it do.
        proxy.stop().unwrap();
        assert_ne!(reserve(&client, "seats").await, Reservation::Done);
        assert_eq!(reserve(&client, "seats").await, Reservation::NotDone);
        assert_eq!(server.execute(["GET", "seats"]), b"$1\r\n2\r\n");
        client.close().await;
    });
}
