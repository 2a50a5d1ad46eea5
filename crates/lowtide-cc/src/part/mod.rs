// SPDX-License-Identifier: MIT OR Apache-2.0
//! What laws are made of: slow start × increase × decrease × detector.

mod delay;
mod alpha_inc;
mod cubic;
mod hystart;
mod hystart_plus;
mod acceleration;
mod increase;
mod marks;
mod overload;
mod overshoot;
mod rounds;
mod slow_start;
mod vegas;
mod window;

pub(crate) use delay::nanos;
pub use delay::{BaseDelay, CurrentDelay, DelaySignal};
pub use alpha_inc::AlphaInc;
pub use cubic::{Cubic, CubicShape};
pub use hystart::{HyStart, HyStartShape};
pub use hystart_plus::HyStartPlus;
mod transients;
mod window;

pub use acceleration::Acceleration;
pub use increase::{Increase, IncreaseKind};
pub use marks::{MarkAverage, Marks};
pub use overload::{Judged, Overload, OverloadSettings};
pub use overshoot::Overshoot;
pub use rounds::Rounds;
pub use slow_start::{HyStartKind, SlowStart};
pub use vegas::VegasRound;
pub use transients::{Phase, Transients};
pub use window::Window;
