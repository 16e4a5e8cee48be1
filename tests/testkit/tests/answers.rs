//! Replies over a socket: the truth in both protocols, and what scripts make of it.

mod common;

use common::Client;
use respiral_testkit::{Action, Hangup, Server};
use std::time::Duration;

#[test]
fn both_protocols_side_by_side() {
    let server = Server::start().unwrap();
    let (mut resp2, mut resp3) = (Client::connect(&server), Client::connect(&server));
    resp3.send("HELLO 3\r\n");
    resp3.expect("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.4.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n");
    resp3.expect(
        ":2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
    );
    resp2.ask("*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\nf\r\n$1\r\nv\r\n", ":1\r\n");
    resp2.ask("HGETALL h\r\nGET x\r\n", "*2\r\n$1\r\nf\r\n$1\r\nv\r\n$-1\r\n");
    resp3.ask("HGETALL h\r\nGET x\r\n", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n_\r\n");
    resp3.ask("ZADD z 1.5 m\r\nZSCORE z m\r\n", ":1\r\n,1.5\r\n");
    resp2.ask("ZSCORE z m\r\n", "$3\r\n1.5\r\n");
}

#[test]
fn texts_that_are_no_errors_are_refused() {
    for text in ["", "-ERR with a dash"] {
        assert!(std::panic::catch_unwind(|| Action::error(text)).is_err(), "{text:?}");
    }
}

#[test]
fn old_servers_and_refused_protocols() {
    let old = Server::builder().resp2_only().start().unwrap();
    let unknown = "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n";
    Client::connect(&old).ask("HELLO 3\r\n", unknown);

    let newer = Server::builder().refuse_resp3().start().unwrap();
    Client::connect(&newer).ask("HELLO 3\r\nPING\r\n", "-NOPROTO unsupported protocol version\r\n+PONG\r\n");

    let closed = Server::builder().password("user", "pw").start().unwrap();
    let mut client = Client::connect(&closed);
    client.ask("GET k\r\n", "-NOAUTH Authentication required.\r\n");
    client.ask("AUTH user no\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    client.ask("AUTH user pw\r\nGET k\r\n", "+OK\r\n$-1\r\n");
}

#[test]
fn client_list_sees_the_others() {
    let server = Server::start().unwrap();
    let (mut first, mut second) = (Client::connect(&server), Client::connect(&server));
    first.ask("CLIENT SETNAME one\r\n", "+OK\r\n");
    second.ask("CLIENT SETNAME two\r\n", "+OK\r\n");
    // The line's length depends on the ports; read it by its header.
    second.send("CLIENT LIST\r\nPING\r\n");
    let mut text = String::new();
    while !text.ends_with("+PONG\r\n") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut second.0, &mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    assert!(text.contains("id=1 ") && text.contains(" name=one ") && text.contains(" name=two "), "{text}");
}

#[test]
fn protocol_errors_are_answered_and_end_the_connection() {
    let server = Server::start().unwrap();
    for (bytes, text) in [
        ("PING\r\n*x\r\n", "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"),
        ("*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"),
        ("*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
    ] {
        let mut client = Client::connect(&server);
        client.ask(bytes, text);
        client.expect_end();
    }
    let mut client = Client::connect(&server);
    client.ask("QUIT\r\nPING\r\n", "+OK\r\n");
    client.expect_end();
}

#[test]
fn commands_and_values_of_any_size_and_split() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    let value = "v".repeat(3_000_000);
    let request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len());
    client.ask(&request, "+OK\r\n");
    client.ask("GET k\r\nPING\r\n", &format!("${}\r\n{value}\r\n+PONG\r\n", value.len()));
    for byte in "*2\r\n$6\r\nSTRLEN\r\n$1\r\nk\r\n".chars() {
        client.send(&byte.to_string());
    }
    client.expect(":3000000\r\n");
    let many: String = (0..50_000).map(|index| format!("$5\r\n{index:05}\r\n")).collect();
    client.ask(&format!("*50001\r\n$6\r\nEXISTS\r\n{many}"), ":0\r\n");
}

#[test]
fn rules_choose_by_name_argument_connection_and_number() {
    let server = Server::start().unwrap();
    let (mut first, mut second) = (Client::connect(&server), Client::connect(&server));
    assert!(server.wait_for(|stats| stats.connections_accepted == 2));
    let by_argument = server.on("get").argument("a").reply_raw("+A\r\n");
    server.on("GET").connection(2).nth(2).reply_error("ERR second\r\nline");
    server.on("CLIENT SETNAME").argument("x").reply_raw(*b"+x\r\n");

    first.ask("GET a\r\nGET b\r\nGET b\r\n", "+A\r\n$-1\r\n$-1\r\n");
    second.ask("GET b\r\nGET b\r\nGET b\r\n", "$-1\r\n-ERR second  line\r\n$-1\r\n");
    first.ask("CLIENT SETNAME x\r\nCLIENT SETNAME y\r\nCLIENT ID\r\n", "+x\r\n+OK\r\n:1\r\n");
    assert_eq!(server.acted(by_argument), 1);
    server.remove(by_argument);
    first.ask("GET a\r\n", "$-1\r\n");
    server.on("*").reply_raw("+any\r\n");
    first.ask("PING\r\n", "+any\r\n");
    server.remove_rules();
    first.ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn withheld_replies_keep_order_and_pushes_pass() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    server.on("GET").times(1).withhold();
    client.send("SET k v\r\nGET k\r\nINCR n\r\n");
    client.expect("+OK\r\n");
    assert!(server.wait_for(|stats| stats.withheld == 1 && stats.commands == 3));
    assert_eq!(server.execute(["GET", "n"]), b"$1\r\n1\r\n", "executed, though not answered");
    assert!(server.push(1, b">1\r\n+hi\r\n"));
    client.expect(">1\r\n+hi\r\n");
    client.expect_silence();
    assert_eq!(server.release(), 1);
    client.expect("$1\r\nv\r\n:1\r\n");
    assert!(!server.push(9, b"+nobody\r\n"));
}

#[test]
fn late_missing_and_last_replies() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    server.on("GET").delay(Duration::from_millis(5));
    client.ask("GET k\r\nPING\r\n", "$-1\r\n+PONG\r\n");
    server.on("ECHO").ignore();
    client.ask("ECHO a\r\nPING\r\n", "+PONG\r\n");

    server.on("STRLEN").act(Action::raw("$10\r\nhalf").then(Hangup::Fin));
    client.ask("PING\r\nSTRLEN k\r\nSET late 1\r\n", "+PONG\r\n$10\r\nhalf");
    client.expect_end();
    assert_eq!(server.execute(["EXISTS", "late"]), b":0\r\n");

    let mut client = Client::connect(&server);
    server.on("SET").reset();
    client.ask("PING\r\n", "+PONG\r\n");
    client.send("SET a b\r\n");
    client.expect_reset();
    let mut client = Client::connect(&server);
    server.on("DEL").close();
    client.send("DEL a\r\n");
    client.expect_end();
}

#[test]
fn scripts_decide_before_rules() {
    let server = Server::start().unwrap();
    server.on("GET").reply_raw("+rule\r\n");
    server.script(|connection, request| {
        let first = request.arg(0)?;
        (request.is("get") && first == b"mine").then(|| Action::raw(format!(":{connection}\r\n")))
    });
    Client::connect(&server).ask("GET mine\r\nGET other\r\nPING\r\n", ":1\r\n+rule\r\n+PONG\r\n");
}

#[test]
fn loading_and_denied_commands() {
    let server = Server::start().unwrap();
    let mut client = Client::connect(&server);
    server.loading(&["SELECT", "GET"], 2);
    server.deny(&["CLIENT SETINFO"]);
    let loading = "-LOADING Redis is loading the dataset in memory\r\n";
    client.ask("SELECT 3\r\nGET k\r\nSELECT 3\r\n", &loading.repeat(3));
    client.ask("SELECT 3\r\nGET k\r\nGET k\r\n", &format!("+OK\r\n{loading}$-1\r\n"));
    client.ask(
        "CLIENT SETINFO lib-name x\r\nCLIENT SETNAME x\r\n",
        "-NOPERM User default has no permissions to run the 'client|setinfo' command\r\n+OK\r\n",
    );
}

#[test]
fn recording() {
    let server = Server::builder().record().start().unwrap();
    let mut client = Client::connect(&server);
    client.ask(
        "*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\nnope\r\n",
        "$-1\r\n-ERR unknown command 'nope', with args beginning with: \r\n",
    );
    let commands = server.take_commands();
    assert_eq!(format!("{commands:?}"), r"[#1 GET \r\n, #1 nope]");
    assert!(commands[0].is("get") && commands[0].args[1] == b"\r\n");
    assert!(server.commands().is_empty());
    server.record(false);
    client.ask("PING\r\n", "+PONG\r\n");
    assert!(server.commands().is_empty());
    assert_eq!(server.stats().commands, 3);
    assert_eq!(server.bytes_received(), 33);
}
