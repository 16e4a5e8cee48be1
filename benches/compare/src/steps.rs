//! What one operation is.

/// The command of a run; keys and values are the same for all sides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Get,
    Set,
    Incr,
}

pub const KEY: &str = "key:12345678";
pub const COUNTER: &str = "counter:1234";
pub const VALUE: [u8; 64] = [b'v'; 64];

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "get" => Some(Kind::Get),
            "set" => Some(Kind::Set),
            "incr" => Some(Kind::Incr),
            _ => None,
        }
    }

    /// The frame of the command.
    pub fn frame(self) -> Vec<u8> {
        let value = String::from_utf8_lossy(&VALUE);
        let words: Vec<&str> = match self {
            Kind::Get => vec!["GET", KEY],
            Kind::Set => vec!["SET", KEY, &value],
            Kind::Incr => vec!["INCR", COUNTER],
        };
        encode(&words)
    }

    /// The length of its reply; INCR counts with ten digits.
    pub fn reply_len(self) -> usize {
        match self {
            Kind::Get => b"$64\r\n".len() + VALUE.len() + 2,
            Kind::Set => b"+OK\r\n".len(),
            Kind::Incr => b":1000000000\r\n".len(),
        }
    }

    /// Commands that put the server into the state that the run needs.
    pub fn set_up() -> Vec<u8> {
        let value = String::from_utf8_lossy(&VALUE);
        [encode(&["SET", KEY, &value]), encode(&["SET", COUNTER, "1000000000"])].concat()
    }
}

fn encode(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len());
    for word in words {
        out += &format!("${}\r\n{word}\r\n", word.len());
    }
    out.into_bytes()
}
