//! The live suite under tokio-uring.

mod hosts;

conformance::live!(tokio_uring: crate::hosts::TokioUring; valkey_81_uring: Valkey81 Uring, valkey_81_epoll: Valkey81 Epoll);
