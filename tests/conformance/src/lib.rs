//! The tests that every adapter has to pass, as generic functions: the whole client, under a host runtime, with each
//! engine.
//!
//! An adapter's tests implement [`Host`] and name it:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: respiral_testkit::CountingAllocator = respiral_testkit::CountingAllocator::new();
//!
//! conformance::conformance!(tokio: crate::Tokio);
//! ```
//!
//! which makes one `#[test]` per function and engine. They need nothing but loopback: the server is the test kit's. The
//! suite in [`mod@live`] runs against real servers instead, and that in the modules beside it with a bad network between; its
//! tests are in modules whose names begin with `live`.
//!
//! Each test runs alone in its process, under a watchdog, and leaves no descriptor open. None depends on how fast the
//! machine is: conditions are waited for, within generous bounds.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "these tests live in real time, beside real sockets")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod allocations;
pub mod bounds;
pub mod cancelling;
pub mod connecting;
pub mod denied;
pub mod driving;
pub mod ending;
pub mod failing;
pub mod forking;
mod host;
pub mod kit;
pub mod live;
pub mod live_cuts;
pub mod live_faults;
pub mod live_half_open;
pub mod live_storm;
pub mod sharing;
pub mod waking;

pub use host::{Host, Join, spawn, spawn_with};
pub use respiral::EngineKind;
pub use servers::Kind;

/// Instantiates the suite for a host: `conformance!(name: crate::Host)`. The test binary's global allocator must be the
/// test kit's counting one.
#[macro_export]
macro_rules! conformance {
    ($name:ident: $host:ty) => {
        mod $name {
            mod uring {
                $crate::conformance_tests!($host, Uring);
            }
            mod epoll {
                $crate::conformance_tests!($host, Epoll);
            }
        }
    };
}

/// The list of all tests, for one host and one engine.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($host:ty, $engine:ident) => {
        $crate::instances! { $host, $engine;
            connecting: many_connections_at_once, eager_connects_all, lazy_opens_nothing, invalid_options_open_nothing, clones_share,
                closed_port, driver_placed_by_hand, driver_moves_between_tasks, several_wait_for_connected,
                connected_after_a_loss, connect_given_up, silent_server, protocols, authentication,
                settings_are_sent, raw_replies_keep_their_shape, f21_optional_steps_refused, f21_permission_withdrawn, f09_late_set_up_replies,
                f23_loading_during_set_up, unix_socket, host_names, look_ups_are_shared, asks_little_of_the_host;
            sharing: callers_are_pipelined, replies_in_place, large_values, large_values_by_reference, f19_both_sides_write,
                f19_ten_thousand_at_once, h21_small_replies_are_kept, h20_large_replies_are_kept,
                connections_share_the_load, in_flight_limit, byte_limit, refused_commands, torn_frames_are_not_sent,
                f01_push_between_replies, f01_push_at_rest, f01_push_in_resp2, f05_unusual_types,
                conversions_fail_alone, calls_are_lazy;
            driving: h08_few_empty_parks, h08_other_tasks_run, h09_timers_fire_under_flood, h09_timers_fire_while_spinning,
                h09_timers_fire_within_a_reply,
                h12_spinning_finds_replies, spinning,
                h10_calls_outside_of_the_loop, h13_no_wake_up_is_lost, h14_many_ready_at_once,
                h18_a_late_host_fails_no_call, h18_a_blocking_wait_is_in_vain;
            ending: h01_client_then_runtime, h04_a_hundred_runtimes, h05_driver_dropped, h05_driver_aborted,
                h05_runtime_dropped, h05_driver_panics, h06_kept_replies_outlive_everything, close_ends_everything,
                close_under_load, ended_at_any_moment, last_handle_dropped;
            bounds: h30_no_thread_is_started, h32_both_sides_write_while_all_is_held, h34_memory_stays_at_the_quota,
                h40_thousands_come_back;
            forking: h07_used_and_dropped_in_a_child;
            waking: h15_wakers_reenter, h15_a_waker_drops_the_last_client, h15_dropped_wakers_reenter,
                h15_a_waker_panics, h15_dropped_inside_anothers_poll;
            failing: deadline_at_each_stage, default_timeout, losses_under_load, a_cut_command_did_not_run,
                lost_at_rest, protocol_errors_cost_one_connection;
            cancelling: f07_dropped_before_it_is_sent, f07_dropped_after_it_is_sent, f07_places_are_given_back,
                cancel_storm, cancel_storm_in_narrow_places, unpolled_calls_hold_up_nobody;
            allocations: none_for_one_caller, none_for_many_callers;
        }
    };
}

/// A `#[test]` for each function.
#[doc(hidden)]
#[macro_export]
macro_rules! instances {
    ($host:ty, $engine:ident; $($group:ident: $($test:ident),+;)+) => {
        $(mod $group {
            $(#[test]
            fn $test() {
                let name = concat!(module_path!(), "::", stringify!($test));
                $crate::kit::run(name, || $crate::$group::$test::<$host>($crate::EngineKind::$engine));
            })+
        })+
    };
}
