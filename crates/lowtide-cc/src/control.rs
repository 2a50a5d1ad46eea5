// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every control law is.

use crate::{Ack, Congestion, Lost, Prices, Reaction, Recovered, Restart, Sent, Time};
use std::time::Duration;

/// What a law knows of its link, bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRates {
    /// What it has carried, where there was a queue; 0: not known.
    pub known: u64,
    /// What it may carry.
    pub at_most: u64,
}

/// What a law does with its path at present, for the connections that [share](crate::SharedLaw) it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stance {
    /// It behaves as an ordinary flow: all of them use its window.
    #[default]
    Window,
    /// It fills the spare capacity of the path.
    Fills,
    /// It only probes, for which one connection is enough.
    Probes {
        /// When it began to.
        since: Time,
        /// Whether it measures how much RTTs differ, which segments of other connections would disturb.
        measures: bool,
    },
}

impl Stance {
    /// For so many round trips a law measures how much RTTs differ, by a probe in each; those that wait let it.
    pub(crate) const MEASURE_ROUND_TRIPS: u32 = 16;
}

/// A congestion control law.
///
/// Calls come in order of time. During a reduction episode the transport walks from the old amount in flight to
/// [`window`](Self::window) by PRR (RFC 9937), so a law sets its window at once.
pub trait CongestionControl: Send {
    /// The connection's handshake is done. Only a law that connections [share](crate::SharedLaw) need know.
    fn on_established(&mut self, _now: Time) {}

    /// The connection is over: nothing else will be called. Only a law that connections share need know.
    fn on_closed(&mut self) {}

    /// A segment was sent.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A segment was declared lost. Each is reported by itself, before the [`on_ack`](Self::on_ack) of the ACK that
    /// told it (which has their sum) or the timeout. Only laws that model the path need it.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// An ACK arrived. Losses and marks that begin an episode are reported by [`on_congestion`](Self::on_congestion),
    /// after this call.
    fn on_ack(&mut self, ack: &Ack) -> Reaction;

    /// Congestion was found.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// The episode is over.
    fn on_recovered(&mut self, _recovered: &Recovered) {}

    /// The last loss or timeout was none: the segment had only been late. The window returns to what it was, if that is
    /// more.
    fn on_spurious(&mut self) {}

    /// The sender was idle and starts again.
    fn on_restart(&mut self, restart: &Restart);

    /// How much may be in flight, bytes. Less than one segment means: one segment every `mss/window` round trips.
    fn window(&self) -> u64;

    /// The threshold of slow start, bytes; `None`: the law has none, or it is not set yet.
    fn ssthresh(&self) -> Option<u64> {
        None
    }

    /// The rate at which to send, bytes per second, never zero; `None`: the transport decides.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// How many segments leave at once at the least where they are paced (Linux' `min_tso_segs`).
    fn least_burst(&self) -> u64 {
        2
    }

    /// For how long at the pacing rate a burst may last, unless it is the [least](Self::least_burst) (Linux'
    /// `sk_pacing_shift`: a millisecond).
    fn longest_burst(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// What it does with its path at present.
    fn stance(&self) -> Stance {
        Stance::Window
    }

    /// What the law knows of the link.
    fn link_rates(&self) -> Option<LinkRates> {
        None
    }

    /// Whether the law steers through recovery itself (as BBR does), so that the transport must not run PRR.
    fn steers_recovery(&self) -> bool {
        false
    }

    /// The law as one that takes a price weight, if it does.
    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        None
    }

    /// Lowers window and threshold to this part of them, but not below the law's minimum; gives whether it can. Not a
    /// reduction of its own: it belongs to the one just made, and is taken back with it.
    fn scale_window(&mut self, _factor: f64) -> bool {
        false
    }

    /// Puts into `prices` what the law has seen of real congestion. A law as such leaves them alone, except for a kind
    /// that it knows better than can be seen from outside; with an [actuator](crate::actuator) it fills all of them.
    fn prices(&self, _prices: &mut Prices) {}

    /// Shows the law's own state to a probe: a name and a value for each (times in milliseconds, windows in segments).
    fn inspect(&self, _show: &mut dyn FnMut(&'static str, f64)) {}
}

/// A law that can be more or less submissive: it behaves as if the congestion price were `1/weight` times what it
/// measured (the DA-LBE framework, equation 5).
pub trait Weighted {
    /// Sets the price weight, above 0: 1 is an ordinary best-effort flow. Until it is first called, the law is as
    /// published.
    ///
    /// Above 1 prices are lower than measured. Only Vegas takes that, and only because its own price, delay, may stand
    /// far above that of the others; then it is a weight of 1 with that [ratio](Self::set_weight_and_ratio). For all
    /// others it is 1.
    fn set_weight(&mut self, weight: f64);

    /// The same with φ, the ratio of the prices that the law pays to the one that the flows around it pay (section IV
    /// of the paper): it then behaves as if prices were `1/(weight·ratio)` of what it measured, and no more
    /// aggressively than an ordinary flow where it cannot tell what that is.
    fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        self.set_weight((weight * ratio).min(1.0));
    }
}
