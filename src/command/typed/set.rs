//! Sets.

use super::{fixed, variadic};

variadic! {
    /// [SADD](https://redis.io/docs/latest/commands/sadd/)
    Sadd, "SADD", (key: K), members: M, at_least_one
}

variadic! {
    /// [SREM](https://redis.io/docs/latest/commands/srem/)
    Srem, "SREM", (key: K), members: M, at_least_one
}

fixed! {
    /// [SMEMBERS](https://redis.io/docs/latest/commands/smembers/)
    Smembers<K>, "SMEMBERS", b"*2\r\n$8\r\nSMEMBERS\r\n", key: K
}

fixed! {
    /// [SISMEMBER](https://redis.io/docs/latest/commands/sismember/)
    Sismember<K, M>, "SISMEMBER", b"*3\r\n$9\r\nSISMEMBER\r\n", key: K, member: M
}

fixed! {
    /// [SCARD](https://redis.io/docs/latest/commands/scard/)
    Scard<K>, "SCARD", b"*2\r\n$5\r\nSCARD\r\n", key: K
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    #[test]
    fn frames() {
        assert_frame(&Sadd { key: "s", members: ["a", "b"] }, &["SADD", "s", "a", "b"]);
        assert_refused(&Sadd { key: "s", members: () }, "members");
        assert_frame(&Srem { key: "s", members: 7 }, &["SREM", "s", "7"]);
        assert_refused(&Srem { key: "s", members: [0u16; 0] }, "members");
        assert_frame(&Smembers { key: "s" }, &["SMEMBERS", "s"]);
        assert_frame(&Sismember { key: "s", member: "a" }, &["SISMEMBER", "s", "a"]);
        assert_frame(&Scard { key: "s" }, &["SCARD", "s"]);
    }
}
