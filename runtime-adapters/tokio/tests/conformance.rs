//! The conformance suite under tokio.

mod hosts;

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

conformance::conformance!(tokio: crate::hosts::Tokio);
conformance::denied!(denied: crate::hosts::Tokio);

/// H17: tokio has no place for a `!Send` task outside a `LocalSet`, as the crate's documentation says.
#[test]
#[should_panic(expected = "spawn_local")]
fn outside_of_a_local_set() {
    let runtime = ::tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async { drop(respiral_tokio::lazy("redis://127.0.0.1")) });
}
