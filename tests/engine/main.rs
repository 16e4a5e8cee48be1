//! The engine contract: one suite, run over io_uring and over epoll, with a hostile peer on loopback.
//!
//! Each test is named after what it proves; `hNN` is the hazard of that number in the design. The harness checks the
//! order of completions all the time, and after each test that no descriptor, thread or buffer is left.
#![expect(clippy::unwrap_used, reason = "a test panics when something fails")]

mod blocks;
mod chaos;
mod closing;
mod connecting;
mod ending;
mod harness;
mod interrupted;
mod parity;
mod receiving;
mod refusing;
mod sending;
mod waking;

macro_rules! contract {
    ($($module:ident: $($test:ident),+;)+) => {
        mod uring {
            $($(#[test] fn $test() { crate::harness::run(respiral::engine::EngineKind::Uring, crate::$module::$test); })+)+
        }
        mod epoll {
            $($(#[test] fn $test() { crate::harness::run(respiral::engine::EngineKind::Epoll, crate::$module::$test); })+)+
        }
    };
}

contract! {
    connecting: echo_over_tcp, echo_over_a_unix_socket, refused, a_missing_unix_socket, unreachable_then_closed,
        a_send_waits_for_the_connection, keepalive_is_set, a_busy_place_is_refused, many_reopened,
        h37_a_full_submission_queue, f11_old_generations_are_silent, operations_on_unknown_connections_are_answered;
    receiving: h16_a_returned_buffer_wakes_a_starved_engine, h19_many_connections_share_four_buffers,
        h19_no_spinning_while_starved, h20_more_than_the_pool_flows, h22_each_ending_with_and_without_data,
        h22_end_of_stream_while_starved, h25_a_flood_does_not_silence_others, a_small_completion_queue_loses_nothing;
    blocks: a_second_block_is_dropped, h16_starved_at_the_flush, blocks_and_buffers_in_turn, what_comes_before_a_block_ends_first, a_block_needs_no_buffer,
        a_stream_ends_in_a_block, a_block_is_closed_with_its_connection, a_block_of_nobody_is_dropped;
    sending: h26_close_tells_exactly_what_was_taken, h27_slices_outlive_their_release,
        h28_much_over_a_slow_reader, h28_one_large_chunk, more_slices_than_one_call_takes, an_empty_send,
        h32_both_sides_write, a_reset_peer_ends_the_send;
    closing: h2_nothing_is_written_after_drop, h3_thousands_are_closed, h40_thousands_of_ends_at_once, h6_segments_outlive_the_engine,
        h29_no_byte_reaches_another_server, h30_no_thread_is_started, close_answers_what_is_owed,
        close_while_data_flows, closing_sends_a_fin;
    waking: h1_the_wake_descriptor_is_harmless, h12_a_poll_sees_what_has_come, h11_two_hundred_ready_at_once, h11_with_a_small_completion_queue,
        h14_budget_one_under_an_edge_triggered_host, h13_no_signal_is_lost,
        h36_the_alarm_is_moved_only_earlier, an_alarm_fires, an_earlier_alarm_replaces_a_later_one,
        a_later_alarm_follows_an_early_one, an_alarm_can_be_in_the_past, a_notifier_wakes_from_another_thread,
        a_notification_is_not_lost_while_parking,
        an_idle_engine_is_silent;
    chaos: chaos;
    ending: operations_after_close_are_answered, dropped_with_everything_in_flight;
}
