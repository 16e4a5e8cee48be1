//! Nothing but a place for `benches/parser.rs`.
