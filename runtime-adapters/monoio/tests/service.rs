//! A service of your own under monoio, tested with the kit: a cache before a database, and answers that go wrong.
//!
//! What it has to prove: the cache is used, it forgets in time, and its failures cost a trip to the database, never the
//! answer.

use respiral_monoio::{Client, ConnectOptions};
use respiral_testkit::Server;
use std::cell::Cell;
use std::time::Duration;

/// The service. Its database counts how often it is asked.
struct Prices {
    cache: Client,
    database_reads: Cell<u32>,
}

impl Prices {
    async fn price(&self, item: &str) -> u64 {
        let key = format!("price:{item}");
        // Any failure is a miss; the deadline bounds how long a sick cache can hold us up.
        if let Ok(Some(price)) = self.cache.get::<Option<u64>, _>(&key).await {
            return price;
        }
        let price = self.read_from_database(item);
        if let Err(error) = self.cache.set(&key, price).ex(60).await {
            eprintln!("not cached: {error}");
        }
        price
    }

    fn read_from_database(&self, item: &str) -> u64 {
        self.database_reads.set(self.database_reads.get() + 1);
        item.len() as u64
    }
}

async fn prices(server: &Server) -> Prices {
    let options = ConnectOptions::try_from(server.url()).unwrap().command_timeout(Duration::from_millis(300));
    Prices { cache: respiral_monoio::connect(options).await.unwrap(), database_reads: Cell::new(0) }
}

#[monoio::test]
async fn the_cache_is_used_and_forgets() {
    let server = Server::start().unwrap();
    let service = prices(&server).await;
    assert_eq!((service.price("tea").await, service.price("tea").await), (3, 3));
    assert_eq!(service.database_reads.get(), 1);
    server.advance_clock(Duration::from_secs(61));
    assert_eq!((service.price("tea").await, service.database_reads.get()), (3, 2));
    service.cache.close().await;
}

#[monoio::test]
async fn errors_and_silence_cost_a_read_and_no_answer() {
    let server = Server::builder().record().start().unwrap();
    let service = prices(&server).await;
    server.execute(["SET", "price:tea", "3"]);

    // The server answers with an error: once, then as usual.
    server.on("GET").times(1).reply_error("LOADING Redis is loading the dataset in memory");
    assert_eq!((service.price("tea").await, service.database_reads.get()), (3, 1));
    assert_eq!((service.price("tea").await, service.database_reads.get()), (3, 1));

    // Someone wrote nonsense there.
    server.on("GET").times(1).reply_raw("$4\r\nfree\r\n");
    assert_eq!((service.price("tea").await, service.database_reads.get()), (3, 2));

    // It answers when the deadline has passed; the late reply reaches nobody.
    server.on("GET").times(1).withhold();
    assert_eq!((service.price("tea").await, service.database_reads.get()), (3, 3));
    server.release();
    assert_eq!(service.price("coffee").await, 6);
    let gets = server.commands().iter().filter(|command| command.text() == "GET price:tea").count();
    assert_eq!(gets, 4, "nothing was asked twice");
    service.cache.close().await;
}
