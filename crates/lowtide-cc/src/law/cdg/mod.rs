// SPDX-License-Identifier: MIT OR Apache-2.0
//! CDG, CAIA Delay-Gradient: backs off at random, with a probability that rises with the delay gradient.
//!
//! D. A. Hayes and G. Armitage, "Revisiting TCP congestion control using delay gradients", IFIP Networking 2011; as in
//! mainline Linux (`net/ipv4/tcp_cdg.c`), in the thesis behind it (K. K. Jonassen, 2015, appendix B), and in FreeBSD
//! (`sys/netinet/cc/cc_cdg.c`). Once per round, with the smoothed gradient g > 0 of the minimum (else of the maximum)
//! delay in a round:
//!
//! ```text
//! P = 1 - exp(-g/G)      cwnd = beta*cwnd with probability P
//! ```
//!
//! Without parameters it is mainline Linux as less than best effort: no shadow window, no detection of ineffectual
//! back-offs, no tolerance of losses. The module's own defaults there are `shadow=on,ineff=5`.
//!
//! Notable differences from the sources:
//! - Windows are fractional (Linux's: `whole_segments=on`), slow start counts segments and not ACKs, and no reduction
//!   of any variant leaves less than two segments (FreeBSD's has no minimum).
//! - G is any positive number. Linux has an integer factor instead, `1000/(G*window)` in mainline and `1000/G` in the
//!   thesis, so with a window of 8 only G = 125/k exists there: 0.0019 (k = 65535), …, 2.976 (the default, k = 42), …,
//!   62.5, 125. A paper's "G = 120" is 125. Mainline's product of factor and gradient wraps at 32 bits, this one does
//!   not.
//! - The window of gradients need not be a power of two.
//! - Hybrid Slow Start uses every RTT sample, not only those that pass the delayed-ACK filter.
//! - FreeBSD's rounds end with its marked packets, here as in Linux; its window does not grow in recovery, nor while it
//!   is not the limit; a delayed ACK may lower a minimum here.
//! - If half of the shadow window is above the window, a loss raises the threshold and slow start follows, not the
//!   window at once.
//! - A price weight (the DA-LBE framework; until one is set, nothing of this holds) replaces G, as `G = G0*w/(1 - w)`,
//!   and towards w = 1 turns growth and the reaction to a loss into CUBIC's (`blend`). The [actuator](crate::actuator)
//!   inflates the price of losses.
//! - A loss within the episode of a delay back-off or a mark reduces nothing more, as in all three, and a timeout there
//!   keeps the threshold, as in Linux.

use crate::{
    CongestionControl, EcnUse, Flow,
    part::HyStartKind,
    text::{parameters, values},
};
use std::{num::NonZeroU32, time::Duration};

mod blend;
mod coexist;
mod control;
mod delay;
mod gradient;
mod growth;
mod probability;
#[cfg(test)]
mod tests;

pub use delay::{Clock, Delay};
pub use growth::Growth;
pub use probability::Exp;

values! {
    /// Which published version. It decides what no other parameter names: when a gradient counts as falling, the rules
    /// of the shadow window, the rounding before the state of the queue is determined, and what happens in a reduction
    /// episode.
    pub enum Variant {
        /// Linux since 4.2.
        Mainline = "mainline",
        /// The thesis of 2015, appendix B.
        Thesis = "thesis",
        /// FreeBSD.
        FreeBsd = "freebsd",
    }
}

parameters! {
    /// Parameters of CDG.
    pub struct Parameters for "cdg" defaults by of {
        /// The published version that the other defaults come from.
        variant: Variant = Variant::Mainline;
        /// The scale G of the gradient, milliseconds. No source goes below 0.0019; at the end of the range there are no
        /// delay back-offs (mainline's factor 0).
        g: f64 = 1000.0 / (42.0 * 8.0), in 0.0001..=1e9;
        /// How many gradients are averaged. 1: no smoothing.
        window: u32 = 8, in 1..=256;
        /// The factor that a delay back-off leaves of the window.
        beta: f64 = 724.0 / 1024.0, in 0.0..=1.0;
        /// The factor that a loss leaves.
        beta_loss: f64 = 0.5, in 0.01..=1.0;
        /// Whether a reduction rounds down to whole segments, before and after, as Linux does. Of three segments 0.707
        /// leaves two then; where the window is that small, this decides the share.
        whole_segments: bool = false;
        /// How slow start ends early.
        hystart: HyStartKind = HyStartKind::On;
        /// Whether the transport paces, so that Hybrid Slow Start must expect ACKs spread over the RTT.
        paced: bool = false;
        /// Growth in congestion avoidance.
        increase: Growth = Growth::Reno;
        /// With `increase=reno` and a price weight w: whether growth, and what a loss leaves, turn into CUBIC's as w
        /// goes to 1.
        blend: bool = true;
        /// With `increase=alpha_inc`: rounds for each further segment per round; 0: always one. Linux has no such
        /// growth: there it is as many rounds as gradients are averaged. FreeBSD's default is 0.
        alpha_inc: u32 = 8, in 0..=20;
        /// Whether `alpha_inc` is as in FreeBSD's code, where its first rounds add nothing, instead of as
        /// documented.
        alpha_as_coded: bool = false;
        /// Whether losses leave at least half of the shadow window.
        shadow: bool = false;
        /// After how many back-offs without a falling delay further ones are held back; off: never.
        ineff: Option<NonZeroU32> = None, in None..=NonZeroU32::new(65_535);
        /// How many are held back then; 0: all until the delay falls (mainline).
        hold: u32 = 0, in 0..=65_535;
        /// Whether losses are ignored while the queue does not seem full.
        tolerance: bool = false;
        /// Whether to use classic ECN.
        ecn: bool = false;
        /// The delay whose gradient counts.
        delay: Delay = Delay::Rtt;
        /// The clock that delays are read from.
        clock: Clock = Clock::Micro;
        /// Whether samples of ACKs that were probably delayed are left out.
        filter: bool = true;
        /// Whether an average of fewer than `window` gradients is that of those, instead of padded with zeros.
        extrapolate: bool = true;
        /// Whether unsmoothed gradients are preferred in slow start.
        unsmoothed: bool = false;
        /// How `exp(-x)` is calculated. Exact by default: the integers of the mainline differ by 2e-5 at most.
        exp: Exp = Exp::Exact;
        /// Whether the transport walks to a lower window in a reduction episode of its own (PRR). Without, the window
        /// falls at once and the next packets wait.
        prr: bool = true;
        /// A round whose minimum delay is at most this (or a sixteenth of the base RTT) above the minimum so far had no
        /// queue, and never backs off; 0: no such rule, as in the sources. With a small G the noise of the gradients
        /// alone keeps a flow from filling an idle link.
        floor: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(1);
    }
}

/// The defaults of a variant.
fn of(variant: Variant) -> Parameters {
    let mainline = Parameters::default();
    let former = Parameters {
        variant,
        hystart: HyStartKind::Off,
        shadow: true,
        ineff: NonZeroU32::new(5),
        hold: 5,
        extrapolate: false,
        unsmoothed: true,
        ..mainline.clone()
    };
    match variant {
        Variant::Mainline => mainline,
        Variant::Thesis => {
            Parameters { g: 1000.0 / 333.0, beta: 716.0 / 1024.0, increase: Growth::Round, exp: Exp::Product, ..former }
        }
        Variant::FreeBsd => Parameters {
            g: 3.0,
            beta: 0.7,
            increase: Growth::AlphaInc,
            alpha_inc: 0,
            alpha_as_coded: true,
            tolerance: true,
            clock: Clock::Milli,
            exp: Exp::Table,
            prr: false,
            ..former
        },
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(control::Cdg::new(self, flow))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}
