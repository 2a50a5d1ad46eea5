// SPDX-License-Identifier: MIT OR Apache-2.0
//! What laws are made of: slow start × increase × decrease × detector.

mod acceleration;
mod aggregate;
mod alpha_inc;
mod cubic;
mod delay;
mod episode;
mod hystart;
mod hystart_plus;
mod increase;
mod marks;
mod overload;
mod overshoot;
mod rounds;
mod slow_start;
mod transients;
mod vegas;
mod window;

pub use acceleration::Acceleration;
pub use aggregate::{Aggregate, Member, Usage};
pub use alpha_inc::AlphaInc;
pub use cubic::{Cubic, CubicShape};
pub use delay::{BaseDelay, CurrentDelay, DelaySignal};
pub use episode::Episode;
pub use hystart::{HyStart, HyStartShape};
pub use hystart_plus::HyStartPlus;
pub use increase::{Increase, IncreaseKind};
pub use marks::{MarkAverage, Marks};
pub use overload::{Judged, Overload, OverloadSettings};
pub use overshoot::Overshoot;
pub use rounds::Rounds;
pub use slow_start::{HyStartKind, SlowStart};
pub use transients::{Phase, Transients};
pub use vegas::VegasRound;
pub use window::Window;
