//! Names for things that are created and replaced: an index into a table and a generation, so that news of
//! the old inhabitant of an index is recognised and ignored (design: `user_data` carries both).

/// One physical connection: the pool slot that it fills and how often that slot was filled before it.
///
/// A completion that carries an old generation belongs to a socket that is already gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId {
    /// Position in the client's table of connections.
    pub index: u16,
    /// Incremented each time the position gets a new socket.
    pub generation: u32,
}

/// A caller's place for its reply.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TicketId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
