//! The conformance suite under monoio, with each of its drivers.

mod hosts;

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

conformance::conformance!(monoio_uring: crate::hosts::Uring);
conformance::conformance!(monoio_legacy: crate::hosts::Legacy);
conformance::denied!(denied_legacy: crate::hosts::Legacy);
conformance::denied!(denied_fusion: crate::hosts::Fusion);
