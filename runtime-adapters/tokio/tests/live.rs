//! The live suite under tokio.

mod hosts;

conformance::live!(tokio: crate::hosts::Tokio; redis_70_uring: Redis70 Uring, redis_70_epoll: Redis70 Epoll);
conformance::live_denied!(denied: crate::hosts::Tokio; Redis70);
