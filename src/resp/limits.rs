//! How much a peer may send before the connection is given up.

/// Bounds on received frames. A frame beyond one of them is a protocol error that names the limit.
///
/// ```
/// let mut limits = respiral::resp::Limits::default();
/// limits.bulk_max = 16 * 1024 * 1024;
/// assert_eq!(limits.depth_max, 512);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one string, streamed strings joined. Default 512 MiB, the server's own `proto-max-bulk-len`.
    pub bulk_max: usize,
    /// Aggregates inside each other, attributes included; one exactly at the limit is accepted. Default 512; more than
    /// [`Limits::DEPTH_CEILING`] counts as that.
    pub depth_max: usize,
    /// Elements of one reply, over all its aggregates; a pair of a map counts two. Default 134 217 728.
    pub elements_max: usize,
    /// Bytes of one line: a simple string, an error, a number. Default 64 KiB, at least 64 bytes.
    pub line_max: usize,
    /// Bytes of one reply. Default 1 GiB.
    pub frame_max: usize,
}

impl Limits {
    /// The largest depth: a [`Value`](super::Value) of this depth is still dropped, cloned and compared safely on a
    /// small stack.
    pub const DEPTH_CEILING: usize = 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_max: 512 << 20,
            depth_max: 512,
            elements_max: 134_217_728,
            line_max: 64 << 10,
            frame_max: 1 << 30,
        }
    }
}
