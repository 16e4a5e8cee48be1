//! The commands through the table, without a socket. Words are separated by blanks; line ends are shown as `|`.

use super::World;
use crate::request::Args;
use crate::session::{NoPeers, Session};

struct Client {
    world: World,
    session: Session,
}

impl Client {
    fn new(resp3: bool) -> Self {
        let mut session = Session::new(7, "127.0.0.1:1".into(), "127.0.0.1:2".into(), true);
        session.resp3 = resp3;
        let mut world = World::default();
        world.store.now = 1_000_000;
        Self { world, session }
    }

    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        String::from_utf8_lossy(&self.run_words(&words)).replace("\r\n", "|")
    }

    fn run_words(&mut self, words: &[&str]) -> Vec<u8> {
        let bytes = words.concat().into_bytes();
        let mut spans = Vec::new();
        for word in words {
            let start = spans.last().map_or(0, |last: &std::ops::Range<usize>| last.end);
            spans.push(start..start + word.len());
        }
        let mut out = Vec::new();
        self.world.run(Args::new(&bytes, &spans), &mut self.session, &NoPeers, &mut out);
        out
    }
}

/// Runs lines against one client and compares each answer.
fn dialog(resp3: bool, lines: &[(&str, &str)]) {
    let mut client = Client::new(resp3);
    for (line, answer) in lines {
        assert_eq!(client.run(line), *answer, "{line}");
    }
}

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range|";
const SYNTAX: &str = "-ERR syntax error|";

#[test]
fn strings() {
    dialog(
        false,
        &[
            ("GET k", "$-1|"),
            ("SET k v", "+OK|"),
            ("get k", "$1|v|"),
            ("SET k w NX", "$-1|"),
            ("SET k w XX GET", "$1|v|"),
            ("SET k w EX 10 PX 5", SYNTAX),
            ("SET k w EX 0", "-ERR invalid expire time in 'set' command|"),
            ("SET k w EX x", NOT_INTEGER),
            ("SET k w NX XX", SYNTAX),
            ("SET k w EX", SYNTAX),
            ("SET k w EX 10", "+OK|"),
            ("SET k x KEEPTTL", "+OK|"),
            ("TTL k", ":10|"),
            ("SET k x", "+OK|"),
            ("TTL k", ":-1|"),
            ("SETEX k 0 v", "-ERR invalid expire time in 'setex' command|"),
            ("SETEX k 7 v", "+OK|"),
            ("GETEX k PERSIST", "$1|v|"),
            ("PTTL k", ":-1|"),
            ("GETEX k PX 1500", "$1|v|"),
            ("PTTL k", ":1500|"),
            ("GETSET k z", "$1|v|"),
            ("SETNX k y", ":0|"),
            ("SETNX n y", ":1|"),
            ("APPEND k zz", ":3|"),
            ("STRLEN k", ":3|"),
            ("GETDEL k", "$3|zzz|"),
            ("GETDEL k", "$-1|"),
            ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command|"),
            ("MSET a 1 b 2", "+OK|"),
            ("MSETNX a 1 c 2", ":0|"),
            ("HSET h f v", ":1|"),
            ("MGET a x h b", "*4|$1|1|$-1|$-1|$1|2|"),
            ("GET h", WRONG_TYPE),
            ("SET h v GET", WRONG_TYPE),
            ("SET r Hello", "+OK|"),
            ("GETRANGE r 1 -2", "$3|ell|"),
            ("GETRANGE r 9 12", "$0||"),
            ("SETRANGE r 6 x", ":7|"),
            ("GET r", "$7|Hello\0x|"),
            ("SETRANGE r -1 x", "-ERR offset is out of range|"),
            ("GET", "-ERR wrong number of arguments for 'get' command|"),
        ],
    );
}

#[test]
fn counters() {
    dialog(
        false,
        &[
            ("INCR n", ":1|"),
            ("INCRBY n 41", ":42|"),
            ("DECR n", ":41|"),
            ("DECRBY n 40", ":1|"),
            ("DECRBY n -9223372036854775808", "-ERR decrement would overflow|"),
            ("INCRBY n 9223372036854775807", "-ERR increment or decrement would overflow|"),
            ("INCRBY n 1.5", NOT_INTEGER),
            ("SET s abc", "+OK|"),
            ("INCR s", NOT_INTEGER),
            ("INCRBYFLOAT s 1", "-ERR value is not a valid float|"),
            ("SET f 0.1", "+OK|"),
            ("INCRBYFLOAT f 0.2", "$3|0.3|"),
            ("INCRBYFLOAT f 3e3", "$6|3000.3|"),
            ("INCRBYFLOAT f inf", "-ERR increment would produce NaN or Infinity|"),
            ("RPUSH l 1", ":1|"),
            ("INCR l", WRONG_TYPE),
        ],
    );
}

#[test]
fn keys_and_time() {
    let mut client = Client::new(false);
    for (line, answer) in [
        ("MSET a 1 b 2 c 3", "+OK|"),
        ("EXISTS a b x a", ":3|"),
        ("DEL a x", ":1|"),
        ("UNLINK b", ":1|"),
        ("TYPE c", "+string|"),
        ("TYPE x", "+none|"),
        ("EXPIRE x 1", ":0|"),
        ("EXPIRE c 100", ":1|"),
        ("EXPIRE c 50 GT", ":0|"),
        ("EXPIRE c 50 LT", ":1|"),
        ("EXPIRE c 50 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible|"),
        ("EXPIRE c 50 ZZ", "-ERR Unsupported option ZZ|"),
        ("EXPIRE c 9223372036854775807", "-ERR invalid expire time in 'expire' command|"),
        ("EXPIREAT c 2000", ":1|"),
        ("TTL c", ":1000|"),
        ("PERSIST c", ":1|"),
        ("PERSIST c", ":0|"),
        ("RENAME x y", "-ERR no such key|"),
        ("RENAME c d", "+OK|"),
        ("KEYS *", "*1|$1|d|"),
        ("PEXPIRE d 500", ":1|"),
        ("DBSIZE", ":1|"),
    ] {
        assert_eq!(client.run(line), answer, "{line}");
    }
    client.world.store.now += 500;
    assert_eq!(client.run("DBSIZE"), ":0|");
    assert_eq!(client.run("GET d"), "$-1|");
    assert_eq!(client.run("TTL d"), ":-2|");
}

#[test]
fn scan_returns_each_key_once() {
    let mut client = Client::new(false);
    for index in 0..100 {
        client.run(&format!("SET key:{index} v"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let answer = client.run(&format!("SCAN {cursor} COUNT 7 MATCH key:*"));
        let parts: Vec<&str> = answer.split('|').collect();
        seen.extend(parts.iter().filter(|part| part.starts_with("key:")).map(|part| (*part).to_owned()));
        cursor = parts[2].to_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen.len(), 100);
    seen.dedup();
    assert_eq!(seen.len(), 100);
    assert_eq!(client.run("SCAN x"), "-ERR invalid cursor|");
    assert_eq!(client.run("SCAN 0 COUNT 0"), SYNTAX);
    assert_eq!(client.run("SCAN 0 COUNT 1000 TYPE list"), "*2|$1|0|*0|");
}

#[test]
fn hashes() {
    dialog(
        true,
        &[
            ("HGETALL h", "%0|"),
            ("HSET h f1 a f2 b", ":2|"),
            ("HSET h f1 c f3 d", ":1|"),
            ("HSET h f1", "-ERR wrong number of arguments for 'hset' command|"),
            ("HSET h f1 c f3", "-ERR wrong number of arguments for 'hset' command|"),
            ("HGET h f1", "$1|c|"),
            ("HGET h x", "_|"),
            ("HMGET h f1 x", "*2|$1|c|_|"),
            ("HGETALL h", "%3|$2|f1|$1|c|$2|f2|$1|b|$2|f3|$1|d|"),
            ("HKEYS h", "*3|$2|f1|$2|f2|$2|f3|"),
            ("HVALS h", "*3|$1|c|$1|b|$1|d|"),
            ("HEXISTS h f1", ":1|"),
            ("HLEN h", ":3|"),
            ("HINCRBY h n 5", ":5|"),
            ("HINCRBY h f1 5", "-ERR hash value is not an integer|"),
            ("HDEL h f1 f2 f3 n x", ":4|"),
            ("EXISTS h", ":0|"),
            ("HDEL h f1", ":0|"),
        ],
    );
    dialog(false, &[("HSET h f v", ":1|"), ("HGETALL h", "*2|$1|f|$1|v|"), ("HGETALL x", "*0|")]);
}

#[test]
fn lists() {
    dialog(
        false,
        &[
            ("RPUSH l a b c", ":3|"),
            ("LPUSH l z y", ":5|"),
            ("LRANGE l 0 -1", "*5|$1|y|$1|z|$1|a|$1|b|$1|c|"),
            ("LLEN l", ":5|"),
            ("LINDEX l -1", "$1|c|"),
            ("LINDEX l 9", "$-1|"),
            ("LINDEX l -9", "$-1|"),
            ("LPOP l", "$1|y|"),
            ("RPOP l 2", "*2|$1|c|$1|b|"),
            ("LPOP l 0", "*0|"),
            ("LPOP l -1", "-ERR value is out of range, must be positive|"),
            ("LPOP x", "$-1|"),
            ("LPOP x 2", "*-1|"),
            ("RPUSH r a b a c a", ":5|"),
            ("LREM r -2 a", ":2|"),
            ("LRANGE r 0 -1", "*3|$1|a|$1|b|$1|c|"),
            ("LTRIM r 1 -1", "+OK|"),
            ("LRANGE r 0 0", "*1|$1|b|"),
            ("LTRIM r 5 9", "+OK|"),
            ("EXISTS r", ":0|"),
            ("SADD s m", ":1|"),
            ("LPUSH s x", WRONG_TYPE),
        ],
    );
}

#[test]
fn sets() {
    dialog(
        true,
        &[
            ("SADD s b a b", ":2|"),
            ("SMEMBERS s", "~2|$1|a|$1|b|"),
            ("SMEMBERS x", "~0|"),
            ("SISMEMBER s a", ":1|"),
            ("SCARD s", ":2|"),
            ("SREM s a b c", ":2|"),
            ("EXISTS s", ":0|"),
        ],
    );
}

#[test]
fn sorted_sets() {
    let lines: &[(&str, &str, &str)] = &[
        ("ZADD z 1 a 2 b 3 c", ":3|", ":3|"),
        ("ZADD z XX CH 5 a 9 q", ":1|", ":1|"),
        ("ZADD z NX 7 a 4 d", ":1|", ":1|"),
        (
            "ZADD z NX XX 1 a",
            "-ERR XX and NX options at the same time are not compatible|",
            "-ERR XX and NX options at the same time are not compatible|",
        ),
        ("ZADD z x a", "-ERR value is not a valid float|", "-ERR value is not a valid float|"),
        ("ZADD z 1 a 2", SYNTAX, SYNTAX),
        ("ZSCORE z a", "$1|5|", ",5|"),
        ("ZSCORE z x", "$-1|", "_|"),
        ("ZADD z INCR 0.5 a", "$3|5.5|", ",5.5|"),
        ("ZINCRBY z -0.5 a", "$1|5|", ",5|"),
        ("ZRANGE z 0 1 WITHSCORES", "*4|$1|b|$1|2|$1|c|$1|3|", "*2|*2|$1|b|,2|*2|$1|c|,3|"),
        ("ZRANGE z 0 0 REV", "*1|$1|a|", "*1|$1|a|"),
        ("ZRANGE z (2 +inf BYSCORE LIMIT 0 2", "*2|$1|c|$1|d|", "*2|$1|c|$1|d|"),
        ("ZRANGE z 4 2 BYSCORE REV", "*3|$1|d|$1|c|$1|b|", "*3|$1|d|$1|c|$1|b|"),
        ("ZRANGE z x 2 BYSCORE", "-ERR min or max is not a float|", "-ERR min or max is not a float|"),
        ("ZRANK z c", ":1|", ":1|"),
        ("ZRANK z x", "$-1|", "_|"),
        ("ZRANK z c WITHSCORE", "*2|:1|$1|3|", "*2|:1|,3|"),
        ("ZCARD z", ":4|", ":4|"),
        ("ZREM z a b c d e", ":4|", ":4|"),
        ("EXISTS z", ":0|", ":0|"),
        ("ZADD z XX 1 a", ":0|", ":0|"),
        ("EXISTS z", ":0|", ":0|"),
    ];
    dialog(false, &lines.iter().map(|(line, resp2, _)| (*line, *resp2)).collect::<Vec<_>>());
    dialog(true, &lines.iter().map(|(line, _, resp3)| (*line, *resp3)).collect::<Vec<_>>());
}

#[test]
fn sessions() {
    dialog(
        false,
        &[
            ("PING", "+PONG|"),
            ("PING hi", "$2|hi|"),
            ("PING a b", "-ERR wrong number of arguments for 'ping' command|"),
            ("ECHO hi", "$2|hi|"),
            ("SELECT 16", "-ERR DB index is out of range|"),
            ("SELECT 3", "+OK|"),
            ("SET k v", "+OK|"),
            ("SELECT 0", "+OK|"),
            ("GET k", "$-1|"),
            ("CLIENT GETNAME", "$-1|"),
            ("CLIENT SETNAME me", "+OK|"),
            ("CLIENT GETNAME", "$2|me|"),
            ("CLIENT ID", ":7|"),
            ("CLIENT SETINFO lib-name respiral", "+OK|"),
            ("CLIENT SETINFO foo x", "-ERR Unrecognized option 'foo'|"),
            ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command|"),
            ("CLIENT NOPE", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.|"),
            ("NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' |"),
            (
                "AUTH pw",
                "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|",
            ),
            ("HELLO x", "-ERR Protocol version is not an integer or out of range|"),
            ("HELLO 4", "-NOPROTO unsupported protocol version|"),
            ("HELLO 3 WHAT", "-ERR Syntax error in HELLO option 'WHAT'|"),
            (
                "HELLO 2",
                "*14|$6|server|$5|redis|$7|version|$5|7.4.0|$5|proto|:2|$2|id|:7|$4|mode|$10|standalone|$4|role|$6|master|$7|modules|*0|",
            ),
            (
                "HELLO 3 SETNAME you",
                "%7|$6|server|$5|redis|$7|version|$5|7.4.0|$5|proto|:3|$2|id|:7|$4|mode|$10|standalone|$4|role|$6|master|$7|modules|*0|",
            ),
            ("CLIENT GETNAME", "$3|you|"),
            ("GET nothing", "_|"),
            ("CONFIG GET maxmemory", "%1|$9|maxmemory|$1|0|"),
            ("CONFIG SET maxmemory 1", "+OK|"),
            ("CONFIG GET m?xmemory", "%1|$9|maxmemory|$1|1|"),
            ("CONFIG SET nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'|"),
            ("ROLE", "*3|$6|master|:0|*0|"),
            ("TIME", "*2|$4|1000|$1|0|"),
            ("COMMAND DOCS", "%0|"),
            ("FLUSHALL", "+OK|"),
        ],
    );
}

#[test]
fn passwords() {
    let mut client = Client::new(false);
    client.world.settings.users.push(("user".into(), "pw".into()));
    client.session.authenticated = false;
    for (line, answer) in [
        ("GET k", "-NOAUTH Authentication required.|"),
        ("AUTH user no", "-WRONGPASS invalid username-password pair or user is disabled.|"),
        ("AUTH pw", "-WRONGPASS invalid username-password pair or user is disabled.|"),
        ("HELLO 3 AUTH user no", "-WRONGPASS invalid username-password pair or user is disabled.|"),
    ] {
        assert_eq!(client.run(line), answer, "{line}");
    }
    assert!(
        client
            .run("HELLO 3")
            .starts_with("-NOAUTH HELLO must be called with the client already authenticated")
    );
    assert!(!client.session.resp3);
    assert!(client.run("HELLO 3 AUTH user pw").starts_with("%7|"));
    assert_eq!(client.run("GET k"), "_|");
}

/// The length of one complete reply at the front; `None` when it is malformed.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    let line_end = memchr::memmem::find(bytes, b"\r\n")?;
    let head = line_end + 2;
    let number = || std::str::from_utf8(&bytes[1..line_end]).ok()?.parse::<i64>().ok();
    let elements = match bytes[0] {
        b'+' | b'-' | b':' | b'_' | b',' => 0,
        b'$' | b'=' => {
            let length = number()?;
            let end = if length < 0 { head } else { head + length as usize + 2 };
            return (length < 0 || bytes.get(end - 2..end)? == b"\r\n").then_some(end);
        }
        b'*' | b'~' => number()?.max(0),
        b'%' => number()? * 2,
        _ => return None,
    };
    (0..elements).try_fold(head, |at, _| Some(at + reply_length(bytes.get(at..)?)?))
}

/// Whatever the arguments, a command does not panic and writes exactly one reply.
#[test]
fn every_command_answers_once_whatever_its_arguments() {
    let words = [
        "k",
        "",
        "-1",
        "0",
        "3",
        "9223372036854775807",
        "-9223372036854775808",
        "(1.5",
        "-inf",
        "nan",
        "\u{fffd}\r\n",
        "GET",
        "EX",
        "NX",
        "INCR",
        "LIMIT",
        "BYSCORE",
        "WITHSCORES",
        "ID",
        "AUTH",
        "COUNT",
    ];
    // A small generator with a fixed seed: the same arguments in every run.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut pick = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for resp3 in [false, true] {
        let mut client = Client::new(resp3);
        for round in 0..200 {
            if round % 20 == 0 {
                for line in [
                    "FLUSHALL",
                    "SELECT 0",
                    "SET k 5",
                    "HSET 3 k 5",
                    "RPUSH 0 k 3",
                    "SADD -1 k",
                    "ZADD GET 1 k 2 3",
                ] {
                    client.run(line);
                }
            }
            for command in super::table::COMMANDS {
                let mut args = vec![command.name];
                args.extend((0..pick(7)).map(|_| words[pick(words.len())]));
                let answer = client.run_words(&args);
                assert_eq!(reply_length(&answer), Some(answer.len()), "{args:?}: {}", answer.escape_ascii());
                client.session.authenticated = true;
            }
        }
    }
}
