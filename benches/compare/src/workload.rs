//! What one operation is, on which key, and what its bytes are. The same for every side.

use bytes::Bytes;
use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution as _, Zipf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// GET of 64 bytes, read in place or in the cheapest form that the client has
    Get,
    /// SET of 64 bytes
    Set,
    Incr,
    /// Four GETs, one SET (64 bytes)
    Mixed,
    /// MGET of 16 keys (64 bytes each)
    Mget,
    /// HGETALL of 32 fields into a HashMap<String, String>
    Hgetall,
    /// Each caller issues 100 GETs at once and awaits all
    Pipeline,
    /// GET of 1 KiB
    #[value(name = "get-1k")]
    Get1k,
    /// GET of 16 KiB
    #[value(name = "get-16k")]
    Get16k,
    /// GET of 16 KiB into a Vec<u8> of the caller
    #[value(name = "get-16k-owned")]
    Get16kOwned,
    /// GET of 1 MiB
    #[value(name = "get-1m")]
    Get1m,
    /// GET of 1 MiB into a Vec<u8> of the caller
    #[value(name = "get-1m-owned")]
    Get1mOwned,
    /// SET of 1 MiB
    #[value(name = "set-1m")]
    Set1m,
    /// Connections that do nothing: memory of each; then GETs by 32 callers, while the others do nothing
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    Uniform,
    /// Exponent 1: the hottest of 1000 keys gets 13 % of the operations
    Zipf,
}

/// One command of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Get,
    GetOwned,
    Set,
    Incr,
    Mget,
    Hgetall,
}

pub const MGET_KEYS: usize = 16;
pub const HASH_FIELDS: usize = 32;
const PIPELINE: u64 = 100;
/// Draws of a key; a power of two, walked in a circle.
const DRAWS: usize = 1 << 14;
/// INCR starts here, so that every reply has ten digits.
const COUNTER: &str = "1000000000";

impl Workload {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it does, for a reader.
    pub fn help(self) -> String {
        match self {
            Workload::Incr => "INCR".to_owned(),
            other => other
                .to_possible_value()
                .and_then(|v| v.get_help().map(ToString::to_string))
                .unwrap_or_default(),
        }
    }

    /// Operations that a caller issues at once.
    pub fn batch(self) -> u64 {
        if self == Workload::Pipeline { PIPELINE } else { 1 }
    }

    pub fn value_bytes(self) -> usize {
        match self {
            Workload::Get1k => 1 << 10,
            Workload::Get16k | Workload::Get16kOwned => 16 << 10,
            Workload::Get1m | Workload::Get1mOwned | Workload::Set1m => 1 << 20,
            _ => 64,
        }
    }

    /// Large values take fewer keys: 16 MiB at most in all.
    fn key_count(self, wanted: usize) -> usize {
        wanted.clamp(1, (16 << 20) / self.value_bytes())
    }

    fn step(self, index: u64) -> Step {
        match self {
            Workload::Set | Workload::Set1m => Step::Set,
            Workload::Incr => Step::Incr,
            Workload::Mixed if index.is_multiple_of(5) => Step::Set,
            Workload::Mget => Step::Mget,
            Workload::Hgetall => Step::Hgetall,
            Workload::Get16kOwned | Workload::Get1mOwned => Step::GetOwned,
            _ => Step::Get,
        }
    }
}

/// A workload with its keys drawn and its value made.
pub struct Work {
    pub workload: Workload,
    pub value: Bytes,
    keys: Vec<String>,
    draws: Vec<u32>,
}

impl Work {
    /// The same arguments give the same draws.
    pub fn new(workload: Workload, key_count: usize, distribution: Distribution) -> Self {
        let count = workload.key_count(key_count);
        // Keys of different workloads must not hold each other's types and sizes.
        let kind = match workload {
            Workload::Incr => 'n'.to_string(),
            Workload::Hgetall => 'h'.to_string(),
            other => format!("{:x}", other.value_bytes().trailing_zeros()),
        };
        let keys = (0..count).map(|i| format!("bench:{kind:0>2}:{i:06}")).collect();
        let mut random = StdRng::seed_from_u64(3);
        let zipf = Zipf::new(count as f64, 1.0).expect("one key at least");
        let draw = |_| match distribution {
            Distribution::Uniform => random.random_range(0..count as u32),
            Distribution::Zipf => zipf.sample(&mut random) as u32 - 1,
        };
        let draws = (0..DRAWS).map(draw).collect();
        Self { workload, value: vec![b'v'; workload.value_bytes()].into(), keys, draws }
    }

    #[inline]
    pub fn step(&self, index: u64) -> Step {
        self.workload.step(index)
    }

    #[inline]
    pub fn key(&self, index: u64) -> &str {
        &self.keys[self.draws[index as usize & (DRAWS - 1)] as usize]
    }

    #[inline]
    pub fn keys(&self, index: u64) -> [&str; MGET_KEYS] {
        std::array::from_fn(|i| self.key(index + i as u64))
    }

    /// The command of operation `index`, as bytes.
    pub fn frame(&self, index: u64) -> Vec<u8> {
        let key = self.key(index).as_bytes();
        match self.step(index) {
            Step::Get | Step::GetOwned => encode(&[b"GET", key]),
            Step::Set => encode(&[b"SET", key, &self.value]),
            Step::Incr => encode(&[b"INCR", key]),
            Step::Hgetall => encode(&[b"HGETALL", key]),
            Step::Mget => {
                let mut words: Vec<&[u8]> = vec![b"MGET"];
                words.extend(self.keys(index).iter().map(|key| key.as_bytes()));
                encode(&words)
            }
        }
    }

    /// The length of its reply, in RESP2 and RESP3 alike.
    pub fn reply_len(&self, index: u64) -> usize {
        let value = bulk_len(self.value.len());
        match self.step(index) {
            Step::Get | Step::GetOwned => value,
            Step::Set => b"+OK\r\n".len(),
            Step::Incr => b":\r\n".len() + COUNTER.len(),
            Step::Mget => b"*16\r\n".len() + MGET_KEYS * value,
            Step::Hgetall => {
                b"*64\r\n".len() + HASH_FIELDS * (bulk_len(field(0).len()) + bulk_len(HASH_VALUE.len()))
            }
        }
    }

    /// Commands that put every key into the state that the workload needs.
    pub fn set_up(&self) -> impl Iterator<Item = Vec<u8>> {
        self.keys.iter().map(|key| match self.workload {
            Workload::Hgetall => {
                let fields: Vec<String> = (0..HASH_FIELDS).map(field).collect();
                let mut words: Vec<&[u8]> = vec![b"HSET", key.as_bytes()];
                words.extend(fields.iter().flat_map(|field| [field.as_bytes(), HASH_VALUE]));
                encode(&words)
            }
            Workload::Incr => encode(&[b"SET", key.as_bytes(), COUNTER.as_bytes()]),
            _ => encode(&[b"SET", key.as_bytes(), &self.value]),
        })
    }
}

const HASH_VALUE: &[u8] = b"sixteen bytes...";

fn field(index: usize) -> String {
    format!("field:{index:02}")
}

fn bulk_len(bytes: usize) -> usize {
    format!("${bytes}\r\n\r\n").len() + bytes
}

pub fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn every_reply_has_the_length_that_the_floor_expects() {
        let server = respiral_testkit::Server::start().unwrap();
        for &workload in Workload::value_variants() {
            let work = Work::new(workload, 10, Distribution::Uniform);
            let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            for frame in work.set_up() {
                stream.write_all(&frame).unwrap();
                let mut line = [0; 5];
                stream.read_exact(&mut line[..if frame.starts_with(b"*2\r\n") { 4 } else { 1 }]).unwrap();
                while line[0] != b'\n' {
                    stream.read_exact(&mut line[..1]).unwrap();
                }
            }
            for index in 0..6 {
                stream.write_all(&work.frame(index)).unwrap();
                let mut reply = vec![0; work.reply_len(index)];
                stream.read_exact(&mut reply).unwrap();
                assert!(reply.ends_with(b"\r\n") && b"$+:*".contains(&reply[0]), "{workload:?}");
            }
        }
    }

    #[test]
    fn mixed_is_four_to_one() {
        let work = Work::new(Workload::Mixed, 1000, Distribution::Uniform);
        let sets = (0..1000).filter(|&index| work.step(index) == Step::Set).count();
        assert_eq!(sets, 200);
    }

    #[test]
    fn zipf_has_hot_keys_and_uniform_has_none() {
        let hottest = |distribution| {
            let work = Work::new(Workload::Get, 1000, distribution);
            let mut hits = std::collections::HashMap::new();
            (0..DRAWS as u64).for_each(|index| *hits.entry(work.key(index).to_owned()).or_insert(0) += 1);
            f64::from(*hits.values().max().unwrap()) / DRAWS as f64
        };
        assert!((0.10..0.17).contains(&hottest(Distribution::Zipf)));
        assert!(hottest(Distribution::Uniform) < 0.01);
    }
}
