// SPDX-License-Identifier: MIT OR Apache-2.0
//! What laws are made of: slow start × increase × decrease × detector.

mod acceleration;
mod increase;
mod marks;
mod overload;
mod overshoot;
mod rounds;
mod slow_start;
mod transients;
mod window;

pub use acceleration::Acceleration;
pub use increase::{Increase, IncreaseKind};
pub use marks::{MarkAverage, Marks};
pub use overload::{Judged, Overload, OverloadSettings};
pub use overshoot::Overshoot;
pub use rounds::Rounds;
pub use slow_start::{HyStartKind, SlowStart};
pub use transients::{Phase, Transients};
pub use window::Window;
