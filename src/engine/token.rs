//! The 64 bits that the kernel keeps for us with each operation or watched descriptor: connection, generation, kind.
//!
//! News of a socket that is gone carries an old generation, and is recognised by that alone (H29, F-11).

use crate::io::ConnectionId;

/// What a completion or an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Connect,
    Receive,
    Fill,
    Send,
    Cancel,
    Alarm,
    AlarmUpdate,
    /// Epoll: a connection's socket.
    Socket,
    /// Epoll: the eventfd.
    Wake,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Connect,
        Kind::Receive,
        Kind::Fill,
        Kind::Send,
        Kind::Cancel,
        Kind::Alarm,
        Kind::AlarmUpdate,
        Kind::Socket,
        Kind::Wake,
    ];
}

/// generation (32 bits), kind (16), index (16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) id: ConnectionId,
    pub(super) kind: Kind,
}

impl Token {
    pub(super) fn new(id: ConnectionId, kind: Kind) -> Self {
        Self { id, kind }
    }

    /// For what belongs to the engine and to no connection.
    pub(super) fn of_engine(kind: Kind) -> Self {
        Self { id: ConnectionId { index: 0, generation: 0 }, kind }
    }

    pub(super) fn pack(self) -> u64 {
        u64::from(self.id.generation) << 32 | (self.kind as u64) << 16 | u64::from(self.id.index)
    }

    /// `None` for a value that [`pack`](Self::pack) never made.
    pub(super) fn unpack(packed: u64) -> Option<Self> {
        let kind = *Kind::ALL.get(usize::from((packed >> 16) as u16))?;
        Some(Self { id: ConnectionId { index: packed as u16, generation: (packed >> 32) as u32 }, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for kind in Kind::ALL {
            for (index, generation) in [(0, 0), (u16::MAX, 1), (7, u32::MAX)] {
                let token = Token::new(ConnectionId { index, generation }, kind);
                assert_eq!(Token::unpack(token.pack()), Some(token));
            }
        }
        assert_eq!(Token::unpack(0xffff_0000), None);
    }
}
