// SPDX-License-Identifier: MIT OR Apache-2.0
//! What laws are made of: slow start × increase × decrease × detector.

mod increase;
mod rounds;
mod slow_start;
mod window;

pub use increase::{Increase, IncreaseKind};
pub use rounds::Rounds;
pub use slow_start::{HyStartKind, SlowStart};
pub use window::Window;
