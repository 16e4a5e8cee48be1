//! The loop, the handles, and what a runtime has to give.

mod breath;
mod call;
mod client;
mod commands;
mod resolve;
mod runtime;
mod shared;
mod task;
mod wait;

pub use call::Call;
pub use client::{Client, CloseGuard};
pub use runtime::{Runtime, Watch};
pub use task::Driver;
