//! The conformance suite under tokio.

mod hosts;

#[global_allocator]
static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();

conformance::conformance!(tokio: crate::hosts::Tokio);
conformance::denied!(denied: crate::hosts::Tokio);

/// H17: tokio has no place for a `!Send` task outside a `LocalSet`, as the crate's documentation says; nothing is left
/// behind.
#[test]
fn outside_of_a_local_set() {
    conformance::kit::run("outside_of_a_local_set", || {
        let runtime = ::tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let refused = std::panic::catch_unwind(|| {
            runtime.block_on(async { drop(respiral_tokio::lazy("redis://127.0.0.1")) });
        });
        let text = refused.unwrap_err().downcast::<&str>().map(|text| text.to_string());
        assert!(text.is_ok_and(|text| text.contains("spawn_local")));
    });
}
