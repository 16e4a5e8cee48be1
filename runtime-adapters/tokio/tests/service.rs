//! A service of your own under tokio, tested with the kit: a limiter of requests, and a server that goes away and returns.
//!
//! What it has to prove: it counts; without a server it lets everyone pass (it must not take the site down); and it counts
//! again as soon as the server is back, with the same client.

use respiral_testkit::Server;
use respiral_tokio::{Client, Delivery, Result};

const PER_MINUTE: i64 = 3;

/// The service: whether this user may have one more request.
async fn allow(client: &Client, user: &str) -> bool {
    match count(client, user).await {
        Ok(count) => count <= PER_MINUTE,
        Err(error) => {
            eprintln!("not limited: {error}");
            true
        }
    }
}

async fn count(client: &Client, user: &str) -> Result<i64> {
    let key = format!("requests:{user}");
    let count = match client.incr(&key).await {
        // Proved not to have run, as when a connection broke before it left: once more counts no one twice.
        Err(error) if error.delivery() == Delivery::NotExecuted => client.incr(&key).await?,
        outcome => outcome?,
    };
    if count == 1 {
        client.cmd::<bool>("EXPIRE").arg((&key, 60)).await?;
    }
    Ok(count)
}

#[tokio::test(flavor = "local")]
async fn it_counts() {
    let server = Server::start().unwrap();
    let client = respiral_tokio::connect(server.url()).await.unwrap();
    for request in 1..=5 {
        assert_eq!(allow(&client, "ann").await, request <= PER_MINUTE);
    }
    assert!(allow(&client, "bob").await);
    server.advance_clock(std::time::Duration::from_secs(61));
    assert!(allow(&client, "ann").await, "a new minute");
    client.close().await;
}

#[tokio::test(flavor = "local")]
async fn the_server_goes_away_and_returns() {
    let server = Server::start().unwrap();
    let client = respiral_tokio::connect(server.url()).await.unwrap();
    for request in 1..=5 {
        assert_eq!(allow(&client, "ann").await, request <= PER_MINUTE);
    }

    // Connections end, and new ones are refused.
    server.stop().unwrap();
    for _ in 0..5 {
        assert!(allow(&client, "ann").await);
    }

    // Back, at the same address, with its data.
    server.restart().unwrap();
    assert!(!allow(&client, "ann").await);
    assert!(allow(&client, "bob").await);

    // A restart between two requests, and the data is lost, as where nothing is persisted. The next request meets the end
    // of the connection, and may pass; the one after it is counted.
    server.restart_empty().unwrap();
    assert!(allow(&client, "ann").await);
    assert!(matches!(count(&client, "ann").await, Ok(1 | 2)));
    client.close().await;
}
