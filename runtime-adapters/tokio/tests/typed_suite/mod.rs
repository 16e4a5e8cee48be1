//! Every typed command, with every option, and what it answers.
//!
//! The expected values are the same whatever protocol the client speaks and whatever server it talks to, so to run the
//! suite twice is to compare (CONN-023). It wants `allow_admin` and a server of its own, at least Redis 7.0, since it
//! removes every key.

use respiral::command::typed::reply::{Cursor, KeyType, Milliseconds, Seconds, TimeToLive};
use respiral::{Client, Error, Result, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, SystemTime};

/// Runs every typed command. Panics at the first answer that is not the expected one.
///
/// # Errors
/// A command failed.
pub async fn typed_suite(client: &Client) -> Result<()> {
    client.flushall().await?;
    strings(client).await?;
    counters(client).await?;
    lists_of_strings(client).await?;
    expiring_strings(client).await?;
    keys(client).await?;
    times_to_live(client).await?;
    scans(client).await?;
    hashes(client).await?;
    lists(client).await?;
    sets(client).await?;
    sorted_sets(client).await?;
    ranges_of_sorted_sets(client).await?;
    connection(client).await?;
    empty_lists(client).await;
    server(client).await
}

/// The one value that a missing key gives: null.
const NULL: Option<String> = None;

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn texts<T: FromIterator<String>>(values: &[&str]) -> T {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn scored(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
    pairs.iter().map(|(member, score)| ((*member).to_owned(), *score)).collect()
}

/// The server refuses with this code.
#[track_caller]
fn assert_server<T: std::fmt::Debug>(result: Result<T>, code: &str) {
    match result {
        Err(Error::Server(error)) => assert_eq!(error.code(), code),
        other => panic!("{other:?}"),
    }
}

/// The call is refused before it is sent, for this argument of this command.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, command: &str, argument: &str) {
    match result {
        Err(Error::InvalidArgument(error)) => {
            assert_eq!((error.command.as_deref(), &*error.what), (Some(command), argument));
        }
        other => panic!("{other:?}"),
    }
}

async fn strings(client: &Client) -> Result<()> {
    assert_eq!(client.get::<Option<String>, _>("s:none").await?, NULL);
    assert!(matches!(client.get::<String, _>("s:none").await, Err(Error::Conversion(_))));
    client.set("s:a", "one").await?;
    let value: String = client.get("s:a").await?;
    assert_eq!(value, "one");
    let bytes: Vec<u8> = client.get("s:a").await?;
    assert_eq!(bytes, b"one");

    // A condition that fails answers null, which is false.
    assert!(!client.set("s:a", "two").nx().await?);
    assert!(client.set("s:a", "two").xx().await?);
    assert!(client.set("s:b", "new").nx().await?);
    assert!(!client.set("s:none", "x").xx().await?);
    assert_eq!(client.set("s:a", "three").get::<Option<String>>().await?, text("two"));
    assert_eq!(client.set("s:c", "new").get::<Option<String>>().await?, NULL);
    assert_eq!(client.set("s:a", "four").xx().get::<Option<String>>().await?, text("three"));
    assert_eq!(client.set("s:d", "new").nx().get::<Option<String>>().await?, NULL);

    assert_eq!(client.append("s:a", "teen").await?, 8);
    assert_eq!(client.append("s:made", 42).await?, 2);
    assert_eq!(client.strlen("s:a").await?, 8);
    assert_eq!(client.strlen("s:none").await?, 0);
    assert_eq!(client.getrange::<String, _>("s:a", 0, 3).await?, "four");
    assert_eq!(client.getrange::<String, _>("s:a", -4, -1).await?, "teen");
    assert_eq!(client.getrange::<String, _>("s:none", 0, -1).await?, "");
    assert_eq!(client.setrange("s:a", 4, "fold").await?, 8);
    assert_eq!(client.get::<String, _>("s:a").await?, "fourfold");
    assert_eq!(client.setrange("s:padded", 2, "x").await?, 3);
    assert_eq!(client.get::<Vec<u8>, _>("s:padded").await?, b"\0\0x");
    assert_eq!(client.getdel::<Option<String>, _>("s:a").await?, text("fourfold"));
    assert_eq!(client.getdel::<Option<String>, _>("s:a").await?, NULL);
    Ok(())
}

async fn counters(client: &Client) -> Result<()> {
    assert_eq!(client.incr("n").await?, 1);
    assert_eq!(client.incrby("n", 41).await?, 42);
    assert_eq!(client.incrby("n", -2).await?, 40);
    assert_eq!(client.decr("n").await?, 39);
    assert_eq!(client.decrby("n", 40).await?, -1);
    assert_eq!(client.get::<i64, _>("n").await?, -1);
    assert_eq!(client.incrbyfloat("f", 10.5).await?, 10.5);
    assert_eq!(client.incrbyfloat("f", -0.25).await?, 10.25);
    assert_eq!(client.get::<f64, _>("f").await?, 10.25);
    client.set("n:text", "x").await?;
    assert_server(client.incr("n:text").await, "ERR");
    client.set("n:most", i64::MAX).await?;
    assert_server(client.incrby("n:most", 1).await, "ERR");
    Ok(())
}

async fn lists_of_strings(client: &Client) -> Result<()> {
    client.mset([("m:a", 1), ("m:b", 2)]).await?;
    client.mset(("m:c", "three", "m:d", 4.5)).await?;
    let values: Vec<Option<String>> = client.mget(["m:a", "m:none", "m:c"]).await?;
    assert_eq!(values, [text("1"), NULL, text("three")]);
    let (a, b, d): (i64, u8, f64) = client.mget(("m:a", "m:b", "m:d")).await?;
    assert_eq!((a, b, d), (1, 2, 4.5));
    assert!(!client.msetnx([("m:a", 7), ("m:e", 7)]).await?);
    assert_eq!(client.exists("m:e").await?, 0);
    assert!(client.msetnx(BTreeMap::from([("m:e", 5), ("m:f", 6)])).await?);
    assert_eq!(client.mget::<Vec<i64>, _>(vec!["m:a", "m:e", "m:f"]).await?, [1, 5, 6]);
    Ok(())
}

/// Far away, and whole in both units.
const FUTURE: u64 = 4_102_444_800;

async fn expiring_strings(client: &Client) -> Result<()> {
    let left = async |key: &str| client.ttl(key).await.map(|time| time.left().map(|time| time.as_secs()));
    client.set("x", 1).ex(100).await?;
    assert!(matches!(left("x").await?, Some(90..=100)));
    client.set("x", 1).keepttl().await?;
    assert!(matches!(left("x").await?, Some(90..=100)));
    client.set("x", 1).px(200_000).await?;
    assert!(matches!(left("x").await?, Some(190..=200)));
    client.set("x", 1).exat(FUTURE).await?;
    let exact = left("x").await?;
    assert!(exact > Some(300));
    client.set("x", 1).await?;
    assert_eq!(client.ttl("x").await?, TimeToLive::NoExpiry);
    client.set("x", 1).pxat(FUTURE * 1000).await?;
    assert!(left("x").await? > Some(300));
    assert!(client.set("x", 2).ex(300).xx().await?);
    assert!(matches!(left("x").await?, Some(290..=300)));
    assert_server(client.set("x", 1).ex(0).await, "ERR");

    let value: Option<u32> = client.getex("x").await?;
    assert_eq!(value, Some(2));
    assert!(matches!(left("x").await?, Some(290..=300)));
    assert_eq!(client.getex::<u32, _>("x").ex(100).await?, 2);
    assert!(matches!(left("x").await?, Some(90..=100)));
    assert_eq!(client.getex::<u32, _>("x").px(200_000).await?, 2);
    assert!(matches!(left("x").await?, Some(190..=200)));
    assert_eq!(client.getex::<u32, _>("x").persist().await?, 2);
    assert_eq!(client.ttl("x").await?, TimeToLive::NoExpiry);
    assert_eq!(client.getex::<u32, _>("x").exat(FUTURE).await?, 2);
    assert!(left("x").await? > Some(300));
    assert_eq!(client.getex::<u32, _>("x").px(200_000).await?, 2);
    assert_eq!(client.getex::<u32, _>("x").pxat(FUTURE * 1000).await?, 2);
    assert!(left("x").await? > Some(300));
    assert_eq!(client.getex::<Option<u32>, _>("x:none").ex(5).await?, None);
    Ok(())
}

async fn keys(client: &Client) -> Result<()> {
    client.mset([("k:a", 1), ("k:b", 2), ("k:c", 3)]).await?;
    assert_eq!(client.exists("k:a").await?, 1);
    assert_eq!(client.exists(["k:a", "k:a", "k:none"]).await?, 2);
    client.rename("k:a", "k:z").await?;
    assert_eq!(client.exists(("k:a", "k:z")).await?, 1);
    assert_server(client.rename("k:a", "k:y").await, "ERR");
    assert_eq!(client.del(["k:z", "k:none"]).await?, 1);
    assert_eq!(client.del("k:z").await?, 0);
    assert_eq!(client.unlink(("k:b", "k:c")).await?, 2);

    client.set("k:string", "v").await?;
    client.rpush("k:list", "v").await?;
    client.sadd("k:set", "v").await?;
    client.zadd("k:zset", (1, "v")).await?;
    client.hset("k:hash", ("f", "v")).await?;
    assert_eq!(client.key_type("k:none").await?, KeyType::NoKey);
    assert_eq!(client.key_type("k:string").await?, KeyType::String);
    assert_eq!(client.key_type("k:list").await?, KeyType::List);
    assert_eq!(client.key_type("k:set").await?, KeyType::Set);
    assert_eq!(client.key_type("k:zset").await?, KeyType::SortedSet);
    assert_eq!(client.key_type("k:hash").await?, KeyType::Hash);
    assert_server(client.get::<Value, _>("k:list").await, "WRONGTYPE");
    Ok(())
}

async fn times_to_live(client: &Client) -> Result<()> {
    assert_eq!(client.ttl("t:none").await?, TimeToLive::NoKey);
    assert_eq!(client.pttl("t:none").await?, TimeToLive::NoKey);
    assert!(!client.expire("t:none", 10).await?);
    assert!(!client.persist("t:none").await?);
    client.set("t", 1).await?;
    assert_eq!(client.ttl("t").await?, TimeToLive::NoExpiry);
    assert_eq!(client.pttl("t").await?, TimeToLive::NoExpiry);
    assert!(client.expire("t", 100).await?);
    assert!(matches!(client.ttl("t").await?, TimeToLive::Left(Seconds(90..=100))));
    assert!(matches!(client.pttl("t").await?, TimeToLive::Left(Milliseconds(90_000..=100_000))));
    assert!(client.pexpire("t", 200_000).await?);
    assert!(matches!(client.ttl("t").await?.left(), Some(time) if time > Duration::from_secs(100)));
    let future = FUTURE as i64;
    assert!(client.expireat("t", future).await?);
    assert!(matches!(client.ttl("t").await?, TimeToLive::Left(time) if time > Seconds(200)));
    assert!(client.pexpireat("t", future * 1000).await?);
    assert!(client.persist("t").await?);
    assert!(!client.persist("t").await?);

    // Every option of every one of the four: with no time yet, with one, with a later and an earlier one.
    assert!(!client.expire("t", 100).xx().await?);
    assert!(!client.expire("t", 100).gt().await?);
    assert!(client.expire("t", 100).nx().await?);
    assert!(client.expire("t", 50).lt().await?);
    assert!(!client.pexpire("t", 100_000).nx().await?);
    assert!(!client.pexpire("t", 100_000).lt().await?);
    assert!(client.pexpire("t", 100_000).gt().await?);
    assert!(client.pexpire("t", 100_000).xx().await?);
    assert!(!client.expireat("t", future).nx().await?);
    assert!(!client.expireat("t", future).lt().await?);
    assert!(client.expireat("t", future).gt().await?);
    assert!(client.expireat("t", future).xx().await?);
    assert!(!client.pexpireat("t", future * 1000).nx().await?);
    assert!(!client.pexpireat("t", future * 1000).gt().await?);
    assert!(client.pexpireat("t", future * 1000 - 1).xx().await?);
    assert!(client.pexpireat("t", future * 1000 - 2).lt().await?);
    assert!(client.expire("t", 0).await?);
    assert_eq!(client.exists("t").await?, 0);
    Ok(())
}

async fn scans(client: &Client) -> Result<()> {
    let pairs: Vec<(String, u32)> = (0..100).map(|number| (format!("scan:{number}"), number)).collect();
    client.mset(&pairs).await?;
    client.sadd("scan:set", "v").await?;
    let (mut cursor, mut found, mut replies) = (Cursor::START, BTreeSet::new(), 0);
    while !cursor.is_done() {
        let (next, keys): (_, Vec<String>) = client.scan(cursor).matching("scan:*").count(7).await?;
        found.extend(keys);
        cursor = next;
        replies += 1;
    }
    let mut all: BTreeSet<String> = pairs.into_iter().map(|(key, _)| key).collect();
    all.insert("scan:set".to_owned());
    assert_eq!(found, all);
    assert!(replies > 1);
    assert_refused(client.scan::<Value>(cursor).await, "SCAN", "cursor");

    let (mut cursor, mut found) = (Cursor::START, BTreeSet::new());
    while !cursor.is_done() {
        let scan = client.scan::<Vec<String>>(cursor).key_type(KeyType::Set).matching("scan:*").count(1000);
        let (next, keys) = scan.await?;
        found.extend(keys);
        cursor = next;
    }
    assert_eq!(found, texts(&["scan:set"]));

    let (cursor, keys): (_, Vec<String>) = client.scan(Cursor::default()).count(10_000).await?;
    assert!(cursor.is_done());
    assert_eq!(HashSet::<String>::from_iter(keys).len() as u64, client.dbsize().await?);
    Ok(())
}

async fn hashes(client: &Client) -> Result<()> {
    assert_eq!(client.hset("h", ("a", 1)).await?, 1);
    assert_eq!(client.hset("h", [("a", 2), ("b", 3)]).await?, 1);
    assert_eq!(client.hset("h", &HashMap::from([("c", "x")])).await?, 1);
    assert_eq!(client.hget::<u8, _, _>("h", "a").await?, 2);
    assert_eq!(client.hget::<Option<String>, _, _>("h", "none").await?, NULL);
    assert_eq!(client.hget::<Option<String>, _, _>("h:none", "a").await?, NULL);
    let values: Vec<Option<String>> = client.hmget("h", ["a", "none", "c"]).await?;
    assert_eq!(values, [text("2"), NULL, text("x")]);
    let (a, c): (u8, String) = client.hmget("h", ("a", "c")).await?;
    assert_eq!((a, &*c), (2, "x"));

    let expected = [("a", "2"), ("b", "3"), ("c", "x")];
    let owned = expected.map(|(field, value)| (field.to_owned(), value.to_owned()));
    assert_eq!(client.hgetall::<BTreeMap<String, String>, _>("h").await?, BTreeMap::from(owned.clone()));
    assert_eq!(client.hgetall::<HashMap<String, String>, _>("h").await?, HashMap::from(owned.clone()));
    let mut pairs: Vec<(String, String)> = client.hgetall("h").await?;
    pairs.sort();
    assert_eq!(pairs, owned);
    assert_eq!(client.hgetall::<Vec<(String, String)>, _>("h:none").await?, []);
    assert_eq!(client.hkeys::<BTreeSet<String>, _>("h").await?, texts(&["a", "b", "c"]));
    assert_eq!(client.hvals::<BTreeSet<String>, _>("h").await?, texts(&["2", "3", "x"]));
    assert_eq!(client.hkeys::<Vec<String>, _>("h:none").await?, NO_TEXTS);
    assert_eq!(client.hvals::<Vec<String>, _>("h:none").await?, NO_TEXTS);

    assert!(client.hexists("h", "a").await?);
    assert!(!client.hexists("h", "none").await?);
    assert!(!client.hexists("h:none", "a").await?);
    assert_eq!(client.hlen("h").await?, 3);
    assert_eq!(client.hlen("h:none").await?, 0);
    assert_eq!(client.hincrby("h", "a", 40).await?, 42);
    assert_eq!(client.hincrby("h", "d", -1).await?, -1);
    assert_eq!(client.hdel("h", ["a", "none"]).await?, 1);
    assert_eq!(client.hdel("h", "b").await?, 1);
    assert_eq!(client.hdel("h:none", "b").await?, 0);
    Ok(())
}

const NO_TEXTS: [String; 0] = [];

async fn lists(client: &Client) -> Result<()> {
    assert_eq!(client.rpush("l", ["c", "d"]).await?, 2);
    assert_eq!(client.lpush("l", ["b", "a"]).await?, 4);
    assert_eq!(client.rpush("l", b"e").await?, 5);
    assert_eq!(client.lrange::<Vec<String>, _>("l", 0, -1).await?, ["a", "b", "c", "d", "e"]);
    assert_eq!(client.lrange::<Vec<String>, _>("l", 1, 2).await?, ["b", "c"]);
    assert_eq!(client.lrange::<Vec<String>, _>("l:none", 0, -1).await?, NO_TEXTS);
    assert_eq!(client.llen("l").await?, 5);
    assert_eq!(client.llen("l:none").await?, 0);
    assert_eq!(client.lindex::<Option<String>, _>("l", -1).await?, text("e"));
    assert_eq!(client.lindex::<Option<String>, _>("l", 9).await?, NULL);

    assert_eq!(client.lpop::<String, _>("l").await?, "a");
    assert_eq!(client.rpop::<Option<String>, _>("l").await?, text("e"));
    assert_eq!(client.lpop::<Option<String>, _>("l:none").await?, NULL);
    assert_eq!(client.rpop::<Option<String>, _>("l:none").await?, NULL);
    assert_eq!(client.rpop::<Vec<String>, _>("l").count(2).await?, ["d", "c"]);
    let rest: Option<Vec<String>> = client.lpop("l").count(9).await?;
    assert_eq!(rest, Some(texts(&["b"])));
    assert_eq!(client.lpop::<Option<Vec<String>>, _>("l").count(1).await?, None);
    assert_eq!(client.rpop::<Option<Vec<String>>, _>("l").count(1).await?, None);

    client.rpush("l", ["a", "x", "b", "x", "c", "x"]).await?;
    assert_eq!(client.lrem("l", 1, "x").await?, 1);
    assert_eq!(client.lrem("l", -1, "x").await?, 1);
    assert_eq!(client.lrange::<Vec<String>, _>("l", 0, -1).await?, ["a", "b", "x", "c"]);
    assert_eq!(client.lrem("l", 0, "x").await?, 1);
    assert_eq!(client.lrem("l:none", 0, "x").await?, 0);
    client.ltrim("l", 1, -1).await?;
    client.ltrim("l:none", 1, -1).await?;
    assert_eq!(client.lrange::<Vec<String>, _>("l", 0, -1).await?, ["b", "c"]);
    Ok(())
}

async fn sets(client: &Client) -> Result<()> {
    assert_eq!(client.sadd("set", ["a", "b", "a"]).await?, 2);
    assert_eq!(client.sadd("set", HashSet::from(["b", "c"])).await?, 1);
    assert_eq!(client.scard("set").await?, 3);
    assert_eq!(client.scard("set:none").await?, 0);
    assert!(client.sismember("set", "a").await?);
    assert!(!client.sismember("set", "none").await?);
    assert!(!client.sismember("set:none", "a").await?);
    assert_eq!(client.smembers::<HashSet<String>, _>("set").await?, texts(&["a", "b", "c"]));
    let mut members: Vec<String> = client.smembers("set").await?;
    members.sort();
    assert_eq!(members, ["a", "b", "c"]);
    assert_eq!(client.smembers::<Vec<String>, _>("set:none").await?, NO_TEXTS);
    assert_eq!(client.srem("set", ["a", "none"]).await?, 1);
    assert_eq!(client.srem("set:none", "a").await?, 0);
    Ok(())
}

async fn sorted_sets(client: &Client) -> Result<()> {
    assert_eq!(client.zadd("z", (1.5, "a")).await?, 1);
    assert_eq!(client.zadd("z", [(2, "b"), (3, "c")]).await?, 2);
    assert_eq!(client.zadd("z", [(9, "a"), (4, "d")]).nx().await?, 1);
    assert_eq!(client.zadd("z", [(2.5, "a"), (4.0, "none")]).xx().ch().await?, 1);
    assert_eq!(client.zadd("z", [(1, "a"), (5, "e")]).gt().ch().await?, 1);
    assert_eq!(client.zscore("z", "a").await?, Some(2.5));
    assert_eq!(client.zadd("z", [(3, "a"), (4, "e")]).lt().ch().await?, 1);
    assert_eq!(client.zadd("z", (7, "a")).xx().gt().await?, 0);
    assert_eq!(client.zscore("z", "a").await?, Some(7.0));
    assert_server(client.zadd("z", (7, "a")).nx().gt().await, "ERR");
    assert_server(client.zadd("z", ("a", 7)).await, "ERR");

    assert_eq!(client.zscore("z", "none").await?, None);
    assert_eq!(client.zscore("z:none", "a").await?, None);
    assert_eq!(client.zrank("z", "b").await?, Some(0));
    assert_eq!(client.zrank("z", "a").await?, Some(4));
    assert_eq!(client.zrank("z", "none").await?, None);
    assert_eq!(client.zrank("z:none", "a").await?, None);
    assert_eq!(client.zcard("z").await?, 5);
    assert_eq!(client.zcard("z:none").await?, 0);
    assert_eq!(client.zincrby("z", -0.5, "a").await?, 6.5);
    assert_eq!(client.zincrby("z", f64::INFINITY, "inf").await?, f64::INFINITY);
    assert_eq!(client.zscore("z", "inf").await?, Some(f64::INFINITY));
    assert_eq!(client.zrem("z", ["inf", "none"]).await?, 1);
    assert_eq!(client.zrem("z:none", "a").await?, 0);
    Ok(())
}

async fn ranges_of_sorted_sets(client: &Client) -> Result<()> {
    client.zadd("r", [(1.0, "a"), (2.5, "b"), (3.0, "c"), (4.0, "d")]).await?;
    assert_eq!(client.zrange::<Vec<String>, _, _, _>("r", 0, -1).await?, ["a", "b", "c", "d"]);
    assert_eq!(client.zrange::<Vec<String>, _, _, _>("r", 0, 1).rev().await?, ["d", "c"]);
    assert_eq!(client.zrange::<Vec<String>, _, _, _>("r:none", 0, -1).await?, NO_TEXTS);
    assert_eq!(client.zrange::<Vec<(String, f64)>, _, _, _>("r:none", 0, -1).withscores().await?, []);

    // Flat in RESP2, pairs in RESP3.
    let range: Vec<(String, f64)> = client.zrange("r", 0, 1).withscores().await?;
    assert_eq!(range, scored(&[("a", 1.0), ("b", 2.5)]));
    let range: Vec<(String, f64)> = client.zrange("r", 0, 0).withscores().await?;
    assert_eq!(range, scored(&[("a", 1.0)]));
    let range: Vec<(String, f64)> = client.zrange("r", 0, 1).rev().withscores().await?;
    assert_eq!(range, scored(&[("d", 4.0), ("c", 3.0)]));
    let range: BTreeMap<String, f64> = client.zrange("r", 1, 2).withscores().await?;
    assert_eq!(range, scored(&[("b", 2.5), ("c", 3.0)]).into_iter().collect());

    let range: Vec<String> = client.zrange("r", 2.5, f64::INFINITY).byscore().await?;
    assert_eq!(range, ["b", "c", "d"]);
    let range: Vec<String> = client.zrange("r", "(2.5", "+inf").byscore().limit(0, 1).await?;
    assert_eq!(range, ["c"]);
    let range: Vec<String> = client.zrange("r", f64::NEG_INFINITY, 3).byscore().limit(1, -1).await?;
    assert_eq!(range, ["b", "c"]);
    let all = client.zrange("r", "+inf", "-inf").byscore().rev().limit(1, 2).withscores();
    let range: Vec<(String, f64)> = all.await?;
    assert_eq!(range, scored(&[("c", 3.0), ("b", 2.5)]));
    assert_server(client.zrange::<Value, _, _, _>("r", 0, 1).limit(0, 1).await, "ERR");
    Ok(())
}

async fn connection(client: &Client) -> Result<()> {
    client.ping().await?;
    assert_eq!(client.ping().message::<String, _>("hello").await?, "hello");
    assert_eq!(client.echo::<String, _>("hello").await?, "hello");
    assert_eq!(client.echo::<u64, _>(42).await?, 42);
    Ok(())
}

async fn empty_lists(client: &Client) {
    let none: [&str; 0] = [];
    assert_refused(client.del(none).await, "DEL", "keys");
    assert_refused(client.unlink(none).await, "UNLINK", "keys");
    assert_refused(client.exists(none).await, "EXISTS", "keys");
    assert_refused(client.mget::<Value, _>(none).await, "MGET", "keys");
    assert_refused(client.mset(none).await, "MSET", "pairs");
    assert_refused(client.mset(["a", "1", "b"]).await, "MSET", "pairs");
    assert_refused(client.msetnx(none).await, "MSETNX", "pairs");
    assert_refused(client.hset("h", none).await, "HSET", "pairs");
    assert_refused(client.hset("h", "f").await, "HSET", "pairs");
    assert_refused(client.hmget::<Value, _, _>("h", none).await, "HMGET", "fields");
    assert_refused(client.hdel("h", none).await, "HDEL", "fields");
    assert_refused(client.lpush("l", none).await, "LPUSH", "values");
    assert_refused(client.rpush("l", none).await, "RPUSH", "values");
    assert_refused(client.sadd("set", none).await, "SADD", "members");
    assert_refused(client.srem("set", none).await, "SREM", "members");
    assert_refused(client.zadd("z", none).await, "ZADD", "pairs");
    assert_refused(client.zadd("z", (1, "a", 2)).await, "ZADD", "pairs");
    assert_refused(client.zrem("z", none).await, "ZREM", "members");
}

async fn server(client: &Client) -> Result<()> {
    let info = client.info().await?;
    assert!(info.contains("redis_version:") && info.contains("role:master"), "{info}");
    let info = client.info().sections("server").await?;
    assert!(info.contains("redis_version:") && !info.contains("role:master"), "{info}");
    let info = client.info().sections(["server", "replication"]).await?;
    assert!(info.contains("redis_version:") && info.contains("role:master"), "{info}");

    let time = client.time().await?;
    assert!((1_600_000_000..FUTURE).contains(&time.seconds));
    assert!(SystemTime::from(time) > SystemTime::UNIX_EPOCH);

    assert!(client.dbsize().await? > 0);
    client.flushdb().await?;
    assert_eq!(client.dbsize().await?, 0);
    for number in 0..4 {
        client.set("key", number).await?;
        match number {
            0 => client.flushdb().asynchronous().await?,
            1 => client.flushdb().synchronous().await?,
            2 => client.flushall().asynchronous().await?,
            _ => client.flushall().synchronous().await?,
        }
        assert_eq!(client.dbsize().await?, 0);
    }
    Ok(())
}
