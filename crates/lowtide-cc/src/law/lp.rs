// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP-LP (Kuzmanovic and Knightly, INFOCOM 2003), by default as in Linux (`net/ipv4/tcp_lp.c`).
//!
//! A smoothed one-way delay above a threshold between the least and the largest one is an early indication of
//! congestion: it halves the window, and a second one within the inference time leaves one segment.
//!
//! Notable differences from Linux:
//! * Delays count in nanoseconds (Linux: milliseconds), with the receiver's clock rate taken as known, and they keep
//!   their sign: Linux takes the absolute value, by which a queue would look like a shorter delay if the offset is
//!   negative.
//! * Without one-way delays the RTT takes their place; Linux does nothing then.
//! * No early reaction inside a reduction episode; a window that is not the limit does not grow.
//!
//! Notable differences of `paper` from the paper: none known. It measures the extremes during the first slow start,
//! reacts after it, at most once per RTT, and never resets them.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal, Time,
    part::{DelaySignal, Episode, Increase, SlowStart, Window},
    text::{parameters, values},
};
use std::time::Duration;

values! {
    /// The published version.
    pub enum Variant {
        /// Linux: every indication resets the extremes to the smoothed delay and to twice its absolute value, which
        /// makes the law depend on the clocks' offset; the threshold of slow start stays.
        Linux = "linux",
        /// The paper: the extremes stay, and an early indication ends slow start.
        Paper = "paper",
    }
}

parameters! {
    /// Parameters of TCP-LP.
    pub struct Parameters for "lp" {
        /// The published version.
        variant: Variant = Variant::Linux;
        /// `δ`: the threshold as a part of the range from the minimum to the maximum delay.
        delta: f64 = 0.15, in 0.01..=1.0;
        /// `γ`: weight of a new sample in the smoothed delay.
        gamma: f64 = 0.125, in 0.001..=1.0;
        /// The inference time in RTTs.
        inference: f64 = 3.0, in 0.0..=1000.0;
        /// The factor that a loss, or a first early indication, leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(LowPriority {
            window: Window::new(flow),
            slow_start: SlowStart::Standard,
            increase: Increase::Reno,
            episode: Episode::default(),
            signal: DelaySignal::default(),
            delays: None,
            inference: Duration::ZERO,
            indicated: None,
            parameters: self.clone(),
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// One-way delays, nanoseconds above the first: the clocks' offset would take up the precision.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Delays {
    /// The first sample. Only the reset of Linux needs it.
    origin: i64,
    minimum: f64,
    /// The second largest delay: a single outlier does not count.
    maximum: f64,
    /// The largest delay.
    reserve: f64,
    smoothed: f64,
}

impl Delays {
    const fn new(origin: i64) -> Self {
        Self { origin, minimum: 0.0, maximum: 0.0, reserve: 0.0, smoothed: 0.0 }
    }

    fn on_sample(&mut self, delay: i64, gamma: f64) {
        let delay = delay.saturating_sub(self.origin) as f64;
        self.minimum = self.minimum.min(delay);
        if delay > self.reserve {
            self.maximum = self.reserve;
            self.reserve = delay;
        } else {
            self.maximum = self.maximum.max(delay);
        }
        self.smoothed += gamma * (delay - self.smoothed);
    }

    fn threshold(&self, delta: f64) -> f64 {
        self.minimum + delta * (self.maximum - self.minimum)
    }

    /// The reset of Linux, which its authors marked FIXME.
    const fn reset(&mut self) {
        self.minimum = self.smoothed;
        self.maximum = self.smoothed + (self.origin as f64 + self.smoothed).abs();
        self.reserve = self.maximum;
    }
}

struct LowPriority {
    parameters: Parameters,
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    episode: Episode,
    signal: DelaySignal,
    delays: Option<Delays>,
    /// The inference time.
    inference: Duration,
    /// When congestion was last indicated early.
    indicated: Option<Time>,
}

impl LowPriority {
    /// Takes the sample of this ACK. Returns whether it indicates congestion.
    fn indicates(&mut self, ack: &Ack) -> bool {
        if let Some(rtt) = ack.rtt {
            self.inference = Duration::from_nanos((rtt.as_nanos() as f64 * self.parameters.inference) as u64);
        }
        let Some(delay) = self.signal.sample(ack) else { return false };
        match &mut self.delays {
            Some(delays) => delays.on_sample(delay, self.parameters.gamma),
            None => self.delays = Some(Delays::new(delay)),
        }
        let Some(delays) = &self.delays else { return false };
        let threshold = delays.threshold(self.parameters.delta);
        let above = match self.parameters.variant {
            Variant::Linux => delays.smoothed >= threshold,
            // The first slow start only measures. While all delays are alike a queue cannot be recognised: the
            // threshold is the minimum delay, which a smoothed delay approaches but never reaches.
            Variant::Paper => {
                delays.maximum > delays.minimum && delays.smoothed > threshold && self.window.ssthresh.is_finite()
            }
        };
        above && !ack.reducing
    }

    fn infers(&self, now: Time) -> bool {
        self.indicated.is_some_and(|at| now - at < self.inference)
    }

    /// Reacts to an early indication: half of the window, or one segment if it is the second within the inference time.
    fn back_off(&mut self, now: Time) -> Reaction {
        let left = if self.infers(now) { 1.0 } else { (self.parameters.beta * self.window.cwnd).max(1.0) };
        self.window.cwnd = left.min(self.window.cwnd);
        self.episode.stands();
        self.indicated = Some(now);
        match self.parameters.variant {
            Variant::Linux => {
                if let Some(delays) = &mut self.delays {
                    delays.reset();
                }
                Reaction::None
            }
            Variant::Paper => {
                self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd.max(self.window.minimum));
                Reaction::Reduced
            }
        }
    }
}

impl CongestionControl for LowPriority {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if self.indicates(ack) {
            return self.back_off(ack.now);
        }
        if !self.infers(ack.now) && !ack.reducing && ack.window_limited {
            let left = self.slow_start.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left, &mut self.window);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        self.increase.on_reduction(congestion.now, &self.window);
        let cwnd = self.window.cwnd;
        match congestion.signal {
            Signal::Timeout => self.window.collapse(self.parameters.beta * cwnd),
            // A loss does not raise the one segment after early indications.
            _ => self.window.lower_to(self.parameters.beta * cwnd),
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.episode.finish();
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.increase.on_restart(restart);
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

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(delays) = &self.delays {
            let threshold = delays.threshold(self.parameters.delta);
            let mut show = |name, delay: f64| show(name, (delays.origin as f64 + delay) / 1e6);
            show("owd_min", delays.minimum);
            show("owd_max", delays.maximum);
            show("sowd", delays.smoothed);
            show("threshold", threshold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::queue_path::Path;

    const FLOW: Flow = Flow { mss: 1000, initial_window: 20, seed: 1 };

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn ack(now: u64, delay: i64) -> Ack {
        Ack {
            now: Time::from_nanos(now * 1_000_000),
            packets: 1,
            rtt: Some(ms(100)),
            one_way_delay: Some(delay * 1_000_000),
            window_limited: true,
            ..Ack::default()
        }
    }

    #[test]
    fn the_largest_sample_counts_once_the_second_one_comes() {
        let mut delays = Delays::new(10);
        for (delay, maximum, smoothed) in [(50, 10.0, 15.0), (30, 30.0, 16.875), (90, 50.0, 26.015_625)] {
            delays.on_sample(delay, 0.125);
            assert_eq!((10.0 + delays.maximum, 10.0 + delays.smoothed), (maximum, smoothed));
        }
        assert_eq!(10.0 + delays.threshold(0.15), 16.0);
        delays.reset();
        assert_eq!((10.0 + delays.minimum, 10.0 + delays.maximum), (26.015_625, 52.031_25));
    }

    #[test]
    fn a_second_indication_within_three_round_trips_leaves_one_segment() {
        for (later, window) in [(299, 1000), (300, 5000)] {
            let mut law = "lp:gamma=1".parse::<crate::Law>().unwrap().build(&FLOW);
            let _ = law.on_ack(&ack(1000, 100));
            assert_eq!(law.window(), 10_000, "Linux reacts to the first sample, which is minimum and maximum");
            let _ = law.on_ack(&ack(1100, 110));
            assert_eq!(law.window(), 10_000, "between 100 and 200, below 115: no growth within the inference time");
            let _ = law.on_ack(&ack(1000 + later, 120));
            assert_eq!(law.window(), window, "after {later} ms");
        }
    }

    #[test]
    fn delays_that_are_all_alike_indicate_nothing_to_the_papers() {
        // A single outlier leaves the second largest delay equal to the minimum, and the smoothed one slightly above
        // it.
        for offset in [0, 1_700_000_000_000] {
            let mut law = "lp:variant=paper".parse::<crate::Law>().unwrap().build(&FLOW);
            law.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, una: 0, nxt: 0, in_flight: 0 });
            for n in 0..1000 {
                let _ = law.on_ack(&ack(1000 + 10 * n, offset + if n == 1 { 105 } else { 100 }));
            }
            assert!(law.window() > 20_000, "{}", law.window());
        }
    }

    #[test]
    fn after_the_inference_time_it_grows_as_reno() {
        let mut law = "lp:gamma=1".parse::<crate::Law>().unwrap().build(&FLOW);
        let _ = law.on_ack(&ack(1000, 100));
        let _ = law.on_ack(&ack(1299, 100));
        assert_eq!(law.window(), 10_000);
        let _ = law.on_ack(&ack(1300, 100));
        assert_eq!(law.window(), 11_000, "Linux leaves the threshold alone: slow start");
        law.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, una: 0, nxt: 0, in_flight: 0 });
        let _ = law.on_ack(&ack(1400, 100));
        assert_eq!(law.window(), 5500 + 1000 * 1000 / 5500);
    }

    #[test]
    fn persistent_delay_by_others_leaves_one_segment() {
        for (text, alone) in [("lp", 2000), ("lp:variant=paper", 15_000)] {
            // The clocks agree: then the reset of Linux leaves a threshold of 1.15 times the delay.
            let mut path = Path::new(text, ms(40), 1000);
            path.offset = Some(0);
            path.buffer = ms(60);
            path.run(ms(20_000), |_| {});
            assert!(path.delivered > alone, "{text} alone: {}", path.delivered);
            // The queue of cross traffic grows to 40 ms within a second.
            let mut least = f64::MAX;
            for _ in 0..100 {
                path.others += Duration::from_micros(400);
                path.run(ms(10), |path| least = least.min(path.cwnd()));
            }
            assert_eq!(least, 1.0, "{text}");
        }
    }

    #[test]
    fn with_clocks_far_apart_linux_is_reno_after_its_first_reset() {
        let mut path = Path::new("lp", ms(40), 1000);
        path.offset = Some(1_000_000_000_000);
        path.buffer = ms(60);
        path.run(ms(20_000), |_| {});
        assert!(path.value("threshold") > 1e6);
        assert!(path.losses > 3, "{}", path.losses);
        assert!(path.delivered > 18_000, "{}", path.delivered);
    }

    #[test]
    fn the_paper_measures_before_the_first_loss_and_reacts_once_a_round_trip() {
        let mut path = Path::new("lp:variant=paper", ms(40), 1000);
        path.buffer = ms(60);
        path.run(ms(100), |_| {});
        assert_eq!((path.episodes, path.losses), (0, 0), "slow start");
        while path.losses == 0 {
            path.run(ms(1), |path| assert_eq!(path.episodes, 0));
        }
        path.run(ms(20_000), |_| {});
        // The extremes stay: from an empty to a full queue, and the flow stays in the lower part of that range.
        assert!((path.value("owd_max") - path.value("owd_min") - 60.0).abs() < 3.0);
        assert!(path.episodes > 10);
        assert_eq!(path.losses, 1);
        path.run(ms(5000), |path| assert!(path.queue() < ms(30), "{:?}", path.queue()));
    }
}
