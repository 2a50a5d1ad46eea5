// SPDX-License-Identifier: MIT OR Apache-2.0
//! The law itself.

use super::{
    Parameters, Variant,
    coexist::{Ineffectual, Shadow},
    delay::Delays,
    gradient::{Gradients, Queue},
    growth::Grower,
};
use crate::{
    Ack, Congestion, CongestionControl, Flow, Price, Prices, Random, Reaction, Recovered, Restart, Signal, Weighted,
    part::{HyStartShape, Rounds, SlowStart, Window},
};

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Growth continues.
    Grow,
    /// Delay required a back-off that was held back as ineffectual.
    Held,
    /// The window was reduced.
    BackedOff,
}

/// The scale of the price of delay with a weight, ms: the greatest G of the Linux module.
const G0: f64 = 125.0;

pub(super) struct Cdg {
    parameters: Parameters,
    /// The price weight, once set: it replaces G.
    weight: Option<f64>,
    window: Window,
    slow_start: SlowStart,
    growth: Grower,
    random: Random,
    rounds: Rounds,
    delays: Delays,
    gradients: Gradients,
    queue: Queue,
    shadow: Shadow,
    ineffectual: Ineffectual,
    /// The episode of the last reduction without a loss, while it lasts: `snd_nxt` at its start.
    episode: Option<u64>,
    /// Whether the recovery of a timeout goes on.
    timeout: bool,
    /// Whether the latest reduction was for a loss, and may be spurious.
    undoable: bool,
    /// The latest smoothed gradients of least and greatest delay and the one that decided, ms per round.
    shown: (f64, f64, f64),
    probability: f64,
    backoffs: u64,
    /// Sum of the price of delay so far: g⁺/G₀ of each round, the expected number of back-offs at a price of 1.
    price: f64,
}

impl Cdg {
    pub(super) fn new(parameters: &Parameters, flow: &Flow) -> Self {
        let p = parameters;
        let window = Window::new(flow);
        Self {
            slow_start: SlowStart::shaped(p.hystart, HyStartShape { paced: p.paced, ..HyStartShape::CDG }),
            growth: Grower::new(p),
            random: Random::new(flow.seed),
            rounds: Rounds::default(),
            delays: Delays::new(p.delay, p.clock, p.filter),
            gradients: Gradients::new(p),
            queue: Queue::Unknown,
            shadow: Shadow::new(p.variant, window.cwnd),
            ineffectual: Ineffectual::new(p.ineff, p.hold),
            episode: None,
            timeout: false,
            undoable: false,
            shown: (0.0, 0.0, 0.0),
            probability: 0.0,
            backoffs: 0,
            price: 0.0,
            parameters: p.clone(),
            weight: None,
            window,
        }
    }

    fn is(&self, variant: Variant) -> bool {
        self.parameters.variant == variant
    }

    /// The former versions count `cwnd == ssthresh` as slow start.
    fn in_slow_start(&self) -> bool {
        self.window.in_slow_start() || !self.is(Variant::Mainline) && self.window.cwnd <= self.window.ssthresh
    }

    /// The hazard of a round with this gradient (ms): it backs off with probability `1 - exp(-hazard)`.
    fn hazard(&self, gradient: f64) -> f64 {
        let rising = gradient.max(0.0);
        self.weight.map_or(rising / self.parameters.g, |weight| rising / G0 * (1.0 / weight - 1.0))
    }

    /// A round with samples has ended.
    fn on_round(&mut self, ack: &Ack) -> Decision {
        let gradient = self.measure();
        let no_queue = self.delays.queue_was_empty(self.parameters.floor);
        self.rounds.start(ack.nxt);
        self.delays.next_round();
        if !no_queue {
            self.price += gradient.max(0.0) / G0;
        }
        let hazard = if no_queue { 0.0 } else { self.hazard(gradient) };
        self.probability = if hazard > 0.0 { self.parameters.exp.probability(hazard) } else { 0.0 };
        if hazard > 0.0 && self.random.uniform() < self.probability { self.on_delay(ack) } else { Decision::Grow }
    }

    /// The gradient of the round that has ended, ms; 0 if there is none.
    fn measure(&mut self) -> f64 {
        let (Some(current), Some(previous)) = (self.delays.current, self.delays.previous) else { return 0.0 };
        let slow_start = self.in_slow_start();
        let measured = self.gradients.on_round(current.since(previous), slow_start);
        if let Some(queue) = measured.queue {
            self.queue = queue;
        }
        if measured.uncontested {
            self.shadow.on_uncontested();
        }
        if measured.falling {
            self.ineffectual.reset();
        }
        self.shown = (measured.smoothed.0, measured.smoothed.1, measured.gradient);
        measured.gradient
    }

    /// Delay requires a back-off.
    fn on_delay(&mut self, ack: &Ack) -> Decision {
        let held = !self.ineffectual.allows();
        if self.is(Variant::FreeBsd) {
            // Only FreeBSD measures in an episode; it does not reduce twice.
            if ack.reducing || self.episode.is_some() {
                return Decision::Held;
            }
            self.delays.previous = None; // "won't see effect until 2nd RTT"
        }
        let before = self.window.cwnd;
        if !held {
            self.growth.on_reduction(ack.now, &self.window);
            self.window.lower_to(self.part(self.parameters.beta));
            self.episode = Some(ack.nxt);
            self.undoable = false;
            self.backoffs += 1;
        }
        self.shadow.on_delay(before, self.window.cwnd, held);
        if held { Decision::Held } else { Decision::BackedOff }
    }

    fn grow(&mut self, ack: &Ack, round_over: bool) {
        let before = self.window.cwnd;
        let slow_start = self.in_slow_start();
        let left = self.slow_start.on_ack(ack, &mut self.window);
        if slow_start {
            self.growth.on_slow_start();
        }
        self.growth.on_ack(ack, left, round_over && !slow_start, &mut self.window);
        let leaves = slow_start && ack.window_limited && !self.window.in_slow_start();
        if leaves && self.growth.is_stepwise() && !self.is(Variant::Mainline) {
            self.window.cwnd = self.window.ssthresh + 1.0; // the end of the former versions' slow start
        }
        if !ack.window_limited {
            self.shadow.on_unused(self.window.cwnd);
        } else if slow_start || round_over || self.is(Variant::Mainline) {
            self.shadow.on_growth(before, self.window.cwnd, slow_start);
        }
    }

    /// The window that a factor leaves, segments.
    fn part(&self, factor: f64) -> f64 {
        let cwnd = self.window.cwnd;
        if self.parameters.whole_segments { (factor * cwnd.floor()).floor() } else { factor * cwnd }
    }

    /// The threshold that a loss, a mark or a timeout leaves, segments.
    fn after_congestion(&mut self, signal: Signal) -> f64 {
        let cwnd = self.window.cwnd;
        let newreno = self.part(self.growth.beta_loss().unwrap_or(self.parameters.beta_loss));
        if signal != Signal::Loss && self.is(Variant::FreeBsd) {
            return newreno; // whatever the shadow and the queue are
        }
        if matches!(signal, Signal::Ecn | Signal::Phantom) && self.is(Variant::Thesis) {
            self.queue = Queue::Unknown;
        }
        if self.parameters.tolerance && self.queue.excuses_loss() {
            return cwnd;
        }
        let shadow = self.shadow.on_loss(cwnd);
        if self.parameters.shadow { newreno.max(shadow) } else { newreno }
    }
}

impl CongestionControl for Cdg {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.delays.on_ack(ack);
        if self.episode.is_some_and(|end| ack.una > end) {
            self.episode = None;
        }
        if ack.reducing && !self.is(Variant::FreeBsd) {
            return Reaction::None;
        }
        let round_over = self.rounds.ended(ack.una) && self.delays.current.is_some();
        let decision = if round_over { self.on_round(ack) } else { Decision::Grow };
        match decision {
            Decision::BackedOff if self.parameters.prr => return Reaction::Reduced,
            Decision::BackedOff => return Reaction::None,
            // FreeBSD's window does not grow when it should have fallen.
            Decision::Held if self.is(Variant::FreeBsd) => return Reaction::None,
            Decision::Held | Decision::Grow => {}
        }
        if !ack.reducing {
            self.grow(ack, round_over);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let timeout = congestion.signal == Signal::Timeout;
        let cwnd = self.window.cwnd;
        let ssthresh = match self.episode {
            // The window has just been reduced. FreeBSD's timeouts follow NewReno all the same.
            Some(_) if !timeout => return,
            Some(_) if !self.is(Variant::FreeBsd) => self.window.ssthresh,
            _ => self.after_congestion(congestion.signal),
        };
        let loss = timeout || congestion.signal == Signal::Loss;
        self.undoable = loss;
        self.timeout = timeout;
        self.episode = (!loss).then_some(congestion.nxt);
        if timeout {
            self.slow_start.reset();
            self.growth.on_timeout(congestion.now, &self.window);
            self.window.collapse(ssthresh);
            return;
        }
        if ssthresh < cwnd {
            self.growth.on_reduction(congestion.now, &self.window);
        }
        self.window.lower_to(ssthresh);
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.episode = None;
        let timeout = std::mem::take(&mut self.timeout);
        if self.is(Variant::FreeBsd) || timeout {
            return;
        }
        self.queue = Queue::Unknown;
        self.rounds.start(recovered.nxt);
        self.delays.next_round();
    }

    fn on_spurious(&mut self) {
        self.episode = None;
        if std::mem::take(&mut self.undoable) {
            self.growth.on_spurious();
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        if restart.window.is_some() && !self.is(Variant::FreeBsd) {
            self.delays.clear();
            self.gradients.clear();
            self.slow_start.reset();
            self.ineffectual.reset();
            self.queue = Queue::Unknown;
            self.rounds.start(restart.nxt);
            self.shadow = Shadow::new(self.parameters.variant, self.window.cwnd);
        }
        self.growth.on_restart(restart);
        self.window.restart(restart);
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.window.scale(factor);
        true
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    /// With a weight the back-offs are those of the inflated price.
    fn prices(&self, prices: &mut Prices) {
        if self.weight.is_some() {
            prices.delay = Price { indications: self.price, removed: self.price * (1.0 - self.parameters.beta) };
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let (min, max, gradient) = self.shown;
        show("gradient_min", min);
        show("gradient_max", max);
        show("gradient", gradient);
        show("probability", self.probability);
        show("backoffs", self.backoffs as f64);
        show("ineffectual", f64::from(self.ineffectual.count()));
        show("queue", f64::from(self.queue as u8));
        show("shadow", self.shadow.window());
    }
}

impl Weighted for Cdg {
    /// The price of a round is g⁺/G₀. A weight multiplies prices by 1/w, that is, adds (1/w - 1) times as much. At w =
    /// 1 nothing is added to the losses that an ordinary flow reacts to, so no delay back-off is left.
    fn set_weight(&mut self, weight: f64) {
        // a weight that is not a number counts as the least
        let weight = if weight.is_nan() { 0.0 } else { weight };
        let weight = weight.clamp(f64::MIN_POSITIVE, 1.0);
        self.weight = Some(weight);
        self.growth.set_weight(weight);
    }
}
