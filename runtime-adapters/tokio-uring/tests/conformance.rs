//! The conformance suite under tokio-uring.

mod hosts;

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

conformance::conformance!(tokio_uring: crate::hosts::TokioUring);
