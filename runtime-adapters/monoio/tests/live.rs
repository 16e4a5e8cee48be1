//! The live suite under monoio: all four servers with its io_uring driver, one with the other. With the other adapters'
//! tests, each server meets both engines.

mod hosts;

conformance::live!(monoio_uring: crate::hosts::Uring;
    redis_70: Redis70 Uring, redis_82: Redis82 Uring, valkey_81: Valkey81 Uring, valkey_91: Valkey91 Uring,
    valkey_91_epoll: Valkey91 Epoll);
conformance::live!(monoio_legacy: crate::hosts::Legacy; redis_82_uring: Redis82 Uring, redis_82_epoll: Redis82 Epoll);
conformance::live_denied!(denied: crate::hosts::Legacy; Valkey91);
