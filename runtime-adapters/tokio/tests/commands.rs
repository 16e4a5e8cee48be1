//! The typed commands against the server of the test kit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod typed_suite;

use respiral_testkit::Server;
use respiral_tokio::{Client, ConnectOptions, Delivery, Error, Protocol};
use typed_suite::typed_suite;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

async fn connect(server: &Server, protocol: Protocol, allow_admin: bool) -> Client {
    let options = ConnectOptions::tcp("127.0.0.1", server.addr().port());
    respiral_tokio::connect(options.protocol(protocol).allow_admin(allow_admin)).await.unwrap()
}

// CONN-023: the same values, whatever the protocol.
#[test]
fn typed_commands_answer_alike_in_both_protocols() {
    let server = Server::start().unwrap();
    run(async {
        for protocol in [Protocol::Resp3, Protocol::Resp2] {
            let client = connect(&server, protocol, true).await;
            typed_suite(&client).await.unwrap_or_else(|error| panic!("{protocol:?}: {error}"));
            client.close().await;
        }
    });
}

// CONN-033
#[test]
fn flushing_is_refused_before_it_is_sent() {
    let server = Server::builder().record().start().unwrap();
    run(async {
        let client = connect(&server, Protocol::Auto, false).await;
        client.set("key", "value").await.unwrap();
        server.take_commands();
        let errors = [
            client.flushdb().await.unwrap_err(),
            client.flushdb().asynchronous().await.unwrap_err(),
            client.flushall().await.unwrap_err(),
            client.flushall().synchronous().await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
            assert_eq!(error.delivery(), Delivery::NotExecuted);
        }
        assert_eq!(client.dbsize().await.unwrap(), 1);
        assert_eq!(names(&server), ["DBSIZE"]);
        client.close().await;

        let client = connect(&server, Protocol::Auto, true).await;
        server.take_commands();
        client.flushall().await.unwrap();
        assert_eq!(client.dbsize().await.unwrap(), 0);
        assert_eq!(names(&server), ["FLUSHALL", "DBSIZE"]);
        client.close().await;
    });
}

// An empty list costs nothing: the server never sees it, and the commands around it are not disturbed.
#[test]
fn empty_lists_are_refused_before_they_are_sent() {
    let server = Server::builder().record().start().unwrap();
    run(async {
        let client = connect(&server, Protocol::Auto, false).await;
        server.take_commands();
        let error = client.del(Vec::<String>::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid argument keys: DEL needs at least one, and got none");
        assert_eq!((error.command(), error.delivery()), (Some("DEL"), Delivery::NotExecuted));
        let error = client.hset("h", ["field"]).await.unwrap_err();
        assert!(error.to_string().contains("HSET needs whole pairs"), "{error}");
        client.ping().await.unwrap();
        assert_eq!(names(&server), ["PING"]);
        client.close().await;
    });
}

fn names(server: &Server) -> Vec<String> {
    let name = |args: &Vec<Vec<u8>>| String::from_utf8(args[0].clone()).unwrap();
    server.take_commands().iter().map(|command| name(&command.args)).collect()
}
