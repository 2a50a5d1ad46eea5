// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phantom signals: the framework for any law (paper 001, section III-D and figure 3).

use super::{Losses, Native, Phantom, source::Source};
use crate::{
    Ack, Congestion, CongestionControl, Flow, LinkRates, Lost, Prices, Random, Reaction, Recovered, Restart, Sent,
    Signal, Stance, Weighted, price::Meter,
};
use std::time::Duration;

/// The reductions that are looked at to judge whether delay explains them.
const LOOKED_AT: u32 = 16;

/// A law, and signals that are made up so that it behaves as if the price were `1/w` times what it is.
///
/// They are [`Signal::Phantom`], which a law treats as ECN; at most one in each reduction episode, none while losses
/// are repaired, and none on an ACK that brings a real one. A law with exact feedback of marks receives them in
/// [`Ack::marked`], too, and then each marked packet counts. On such an ACK the transport gets [`Reaction::Reduced`].
///
/// Prices and intervals are those of real signals. Time without data to send is not left out of them: after a long one
/// the price is not fresh, and nothing is made up until the next real signal.
pub struct PhantomEcn {
    law: Box<dyn CongestionControl>,
    weight: f64,
    source: Source,
    random: Random,
    meter: Meter,
    /// Whether the law's feedback of marks is exact.
    accurate: bool,
    /// Whether the law inflates marks by itself.
    marks_are_its_own: bool,
    /// If the law has a weight of its own, so that only its losses are inflated here: whether and when even they are.
    native: Option<Losses>,
    /// The last reductions, one bit each, the latest the lowest: whether it was because of delay. Those that have not
    /// yet been count as such, since signals where delay is usable would only cost idle capacity.
    by_delay: u32,
    /// Signals made up so far: reductions, and packets called marked.
    made_up: (u64, u64),
}

impl PhantomEcn {
    /// Around a law that has no weight. `accurate`: it gets exact feedback of marks.
    pub fn new(law: Box<dyn CongestionControl>, parameters: &Phantom, accurate: bool, flow: &Flow) -> Self {
        // The law has the flow's own seed.
        let random = Random::new(flow.seed ^ 0x9E37_79B9_7F4A_7C15);
        Self {
            law,
            weight: 1.0,
            source: Source::new(parameters, accurate),
            random,
            meter: Meter::new(accurate, flow.mss),
            accurate,
            marks_are_its_own: false,
            native: None,
            by_delay: (1 << LOOKED_AT) - 1,
            made_up: (0, 0),
        }
    }

    /// Around a law with a weight of its own. Only losses are inflated here, if at all.
    pub(super) fn native(law: Box<dyn CongestionControl>, native: &Native, accurate: bool, flow: &Flow) -> Self {
        let meter = Meter::new(accurate, flow.mss);
        let marks_are_its_own = accurate;
        Self { native: Some(native.losses), meter, marks_are_its_own, ..Self::new(law, &native.phantom(), false, flow) }
    }

    /// The part of the due signals that is made up.
    fn part(&self) -> f64 {
        let losses = LOOKED_AT - self.by_delay.count_ones();
        match self.native {
            None | Some(Losses::On) => 1.0,
            Some(Losses::Usual | Losses::Off) => 0.0,
            Some(Losses::Share) => f64::from(losses) / f64::from(LOOKED_AT),
            Some(Losses::Few) => f64::from(u8::from(losses > LOOKED_AT / 2)),
        }
    }

    fn remember(&mut self, by_delay: bool) {
        self.by_delay = ((self.by_delay << 1) | u32::from(by_delay)) & ((1 << LOOKED_AT) - 1);
    }

    /// How many of the ACK's packets are to be taken for marked, although they are not. Without exact feedback: one or
    /// none.
    fn draw(&mut self, ack: &Ack) -> u32 {
        if self.weight >= 1.0 || (ack.reducing && !self.accurate) {
            return 0;
        }
        let slow_start = self.law.ssthresh().is_none_or(|ssthresh| self.law.window() < ssthresh);
        let due = self.source.due(ack, slow_start, self.weight) * self.part();
        if due <= 0.0 {
            return 0;
        }
        let most = if self.accurate { f64::from(ack.packets.saturating_sub(ack.marked)) } else { 1.0 };
        let due = due.min(most);
        let whole = libm::floor(due);
        whole as u32 + u32::from(self.random.uniform() < due - whole)
    }
}

impl CongestionControl for PhantomEcn {
    fn on_sent(&mut self, sent: &Sent) {
        self.source.on_sent(sent.now);
        self.law.on_sent(sent);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.law.on_lost(lost);
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.source.on_ack(ack);
        let phantoms = self.draw(ack);
        let reduces = phantoms > 0 && !ack.reducing && ack.marked == 0 && ack.lost == 0;
        let mut told = *ack;
        if self.accurate {
            self.made_up.1 += u64::from(phantoms);
            told.marked += phantoms;
        }
        // The ACK that brings a signal is no reason to grow.
        told.window_limited &= !reduces;
        let before = self.law.window();
        let reaction = self.law.on_ack(&told);
        self.meter.on_ack(ack, reaction, before, self.law.window());
        if reaction == Reaction::Reduced {
            self.remember(true);
            return reaction;
        }
        if !reduces {
            return reaction;
        }
        self.made_up.0 += 1;
        self.law.on_congestion(&Congestion {
            now: ack.now,
            signal: Signal::Phantom,
            una: ack.una,
            nxt: ack.nxt,
            in_flight: ack.in_flight.saturating_sub(ack.bytes),
        });
        Reaction::Reduced
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let before = self.law.window();
        self.law.on_congestion(congestion);
        if congestion.signal == Signal::Phantom {
            return;
        }
        let repair = congestion.signal != Signal::Ecn;
        if repair || !self.marks_are_its_own {
            self.source.on_real(congestion.now, repair);
            self.remember(false);
        }
        let after = self.law.window();
        let back = if congestion.signal == Signal::Timeout { self.law.ssthresh().unwrap_or(0) } else { 0 };
        self.meter.on_congestion(congestion.signal, before, after.max(back));
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.source.on_recovered();
        self.law.on_recovered(recovered);
    }

    fn on_spurious(&mut self) {
        self.source.on_spurious();
        self.meter.on_spurious();
        self.law.on_spurious();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.law.on_restart(restart);
    }

    fn window(&self) -> u64 {
        self.law.window()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.law.ssthresh()
    }

    fn least_burst(&self) -> u64 {
        self.law.least_burst()
    }

    fn longest_burst(&self) -> Duration {
        self.law.longest_burst()
    }

    fn stance(&self) -> Stance {
        self.law.stance()
    }

    fn link_rates(&self) -> Option<LinkRates> {
        self.law.link_rates()
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.law.pacing_rate()
    }

    fn steers_recovery(&self) -> bool {
        self.law.steers_recovery()
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.law.scale_window(factor)
    }

    fn prices(&self, prices: &mut Prices) {
        *prices = *self.meter.seen();
        self.law.prices(prices);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.law.inspect(show);
        show("price", self.source.price());
        show("tau", 1e3 * self.source.tau().as_secs_f64());
        show("phantoms", self.made_up.0 as f64);
        if self.accurate {
            show("phantom_marks", self.made_up.1 as f64);
        }
    }
}

impl Weighted for PhantomEcn {
    fn set_weight(&mut self, weight: f64) {
        self.set_weight_and_ratio(weight, 1.0);
    }

    fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        self.weight = super::at_most_one(weight * ratio);
        if self.native.is_some()
            && let Some(law) = self.law.weighted()
        {
            law.set_weight_and_ratio(weight, ratio);
        }
    }
}
