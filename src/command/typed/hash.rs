//! Hashes.

use super::{fixed, variadic};

fixed! {
    /// [HGET](https://redis.io/docs/latest/commands/hget/)
    Hget<K, F>, "HGET", b"*3\r\n$4\r\nHGET\r\n", key: K, field: F
}

fixed! {
    /// [HGETALL](https://redis.io/docs/latest/commands/hgetall/)
    Hgetall<K>, "HGETALL", b"*2\r\n$7\r\nHGETALL\r\n", key: K
}

fixed! {
    /// [HEXISTS](https://redis.io/docs/latest/commands/hexists/)
    Hexists<K, F>, "HEXISTS", b"*3\r\n$7\r\nHEXISTS\r\n", key: K, field: F
}

fixed! {
    /// [HLEN](https://redis.io/docs/latest/commands/hlen/)
    Hlen<K>, "HLEN", b"*2\r\n$4\r\nHLEN\r\n", key: K
}

fixed! {
    /// [HKEYS](https://redis.io/docs/latest/commands/hkeys/)
    Hkeys<K>, "HKEYS", b"*2\r\n$5\r\nHKEYS\r\n", key: K
}

fixed! {
    /// [HVALS](https://redis.io/docs/latest/commands/hvals/)
    Hvals<K>, "HVALS", b"*2\r\n$5\r\nHVALS\r\n", key: K
}

fixed! {
    /// [HINCRBY](https://redis.io/docs/latest/commands/hincrby/)
    Hincrby<K, F>, "HINCRBY", b"*4\r\n$7\r\nHINCRBY\r\n", key: K, field: F, increment: i64
}

variadic! {
    /// [HSET](https://redis.io/docs/latest/commands/hset/)
    Hset, "HSET", (key: K), pairs: P, whole_pairs
}

variadic! {
    /// [HMGET](https://redis.io/docs/latest/commands/hmget/)
    Hmget, "HMGET", (key: K), fields: F, at_least_one
}

variadic! {
    /// [HDEL](https://redis.io/docs/latest/commands/hdel/)
    Hdel, "HDEL", (key: K), fields: F, at_least_one
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    #[test]
    fn frames_of_fixed_commands() {
        assert_frame(&Hget { key: "h", field: "f" }, &["HGET", "h", "f"]);
        assert_frame(&Hgetall { key: "h" }, &["HGETALL", "h"]);
        assert_frame(&Hexists { key: "h", field: "f" }, &["HEXISTS", "h", "f"]);
        assert_frame(&Hlen { key: "h" }, &["HLEN", "h"]);
        assert_frame(&Hkeys { key: "h" }, &["HKEYS", "h"]);
        assert_frame(&Hvals { key: "h" }, &["HVALS", "h"]);
        assert_frame(&Hincrby { key: "h", field: "f", increment: -2 }, &["HINCRBY", "h", "f", "-2"]);
    }

    #[test]
    fn frames_of_lists() {
        assert_frame(&Hset { key: "h", pairs: ("f", 1) }, &["HSET", "h", "f", "1"]);
        assert_frame(&Hset { key: "h", pairs: [("f", 1), ("g", 2)] }, &["HSET", "h", "f", "1", "g", "2"]);
        assert_refused(&Hset { key: "h", pairs: () }, "pairs");
        assert_refused(&Hset { key: "h", pairs: "f" }, "pairs");
        assert_frame(&Hmget { key: "h", fields: ["f", "g"] }, &["HMGET", "h", "f", "g"]);
        assert_refused(&Hmget { key: "h", fields: Vec::<String>::new() }, "fields");
        assert_frame(&Hdel { key: "h", fields: "f" }, &["HDEL", "h", "f"]);
        assert_refused(&Hdel { key: "h", fields: None::<&str> }, "fields");
    }
}
