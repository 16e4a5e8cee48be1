//! The everyday commands as methods of [`Client`](super::Client), a file per group.
//!
//! Required arguments stand in position, options are methods of the call. A method whose reply is the caller's data is
//! generic over its type (`let name: Option<String> = client.get("name").await?`); one with a natural type has that.

mod string;
