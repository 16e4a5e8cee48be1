//! respiral under [tokio-uring](https://docs.rs/tokio-uring).
//!
//! tokio-uring runs on tokio's current-thread runtime with a `LocalSet`, so this is `respiral-tokio` under another name.
//! The client has its own ring; it uses nothing of tokio-uring's.
//!
//! ```no_run
//! tokio_uring::start(async {
//!     let client = respiral_tokio_uring::connect("redis://127.0.0.1").await.unwrap();
//!     let count: i64 = client.incr("visits").await.unwrap();
//!     println!("visit {count}, by {}", client.engine());
//!     client.close().await;
//! });
//! ```

pub use respiral_tokio::*;
