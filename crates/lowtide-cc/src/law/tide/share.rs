// SPDX-License-Identifier: MIT OR Apache-2.0
//! The weighted share: Tide's window on a full link. It is that of an ordinary CUBIC flow that grows more slowly, and
//! backs off when competing flows do.

use std::mem;

use super::{BEGIN, path::Path};
use crate::{
    Ack, Flow, Restart,
    part::{Cubic, CubicShape, HyStartKind, SlowStart, Window},
};

/// With a weight this window grows in LISTEN, and rests in FILL. At a weight of 1 it always grows, and is CUBIC's as in
/// Linux.
///
/// The packet that meets a full queue is rarely one of a flow that grows slowly. So its own losses alone would not make
/// its rate follow its weight. Therefore the share backs off when competing flows do. Both then have the same epochs,
/// and divide the link by how fast they grow. An ordinary flow does not see back-offs of others, so they count less,
/// the larger the weight is. An own loss pays for the fall of the queue that shows, or for the next one: otherwise the
/// share would back off more often than the others.
#[derive(Clone, Debug)]
pub(super) struct Share {
    weight: f64,
    cubic: Cubic,
    slow_start: SlowStart,
    /// The window of the share, packets.
    window: Window,
    /// Longest queue of a round since the latest reduction, seconds; with `rest` that of the latest round.
    peak: f64,
    /// Rounds until a fall of the queue counts again. A fall that shows ends with them at the latest.
    rest: u32,
    /// The queue falls: an own loss may still explain it.
    falls: bool,
    /// An own loss has paid for the next back-off of competing flows.
    paid: bool,
}

/// That of CUBIC (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// Back-offs of competing flows already make room for new flows, so fast convergence is for own losses.
const SHAPE: CubicShape = CubicShape { fast_convergence: false, ..CubicShape::LINUX };
/// Slow start ends by delay or ACK trains from this window on, packets (Linux).
const LOW_WINDOW: f64 = 16.0;
/// Least window of an ordinary flow, packets.
const LEAST: f64 = 2.0;
/// A packet per 16 RTTs: negligible.
const SLOWEST: f64 = 1.0 / 16.0;
/// A queue that falls by this part, and 1 ms, shows a back-off of competing flows.
const FALL: f64 = 0.15;
/// Rounds that a back-off of competing flows takes to show at most.
const REST: u32 = 3;

impl Share {
    pub(super) fn new(flow: &Flow, weight: f64) -> Self {
        let mut window = Window::new(flow);
        window.cwnd = 0.0;
        let mut share = Self {
            weight: 0.0,
            cubic: Cubic::new(BETA, SHAPE),
            slow_start: SlowStart::new(HyStartKind::On, LOW_WINDOW),
            window,
            peak: 0.0,
            rest: 0,
            falls: false,
            paid: false,
        };
        share.set_weight(weight);
        share.window.cwnd = BEGIN * share.weight;
        share
    }

    /// The window changes with the weight at once, since small windows grow slowly. Growth is proportional to w^1.2:
    /// the share of a link beside one CUBIC flow is then nearly w.
    pub(super) fn set_weight(&mut self, weight: f64) {
        let before = mem::replace(&mut self.weight, weight.clamp(0.0, 1.0));
        if before > 0.0 {
            let factor = self.weight / before;
            self.window.cwnd *= factor;
            self.window.ssthresh *= factor;
            self.cubic.scale(factor);
        }
        self.window.minimum = (LEAST * self.weight).max(SLOWEST);
        let part = libm::pow(self.weight, 1.2);
        self.cubic.set_shape(CubicShape {
            c: (SHAPE.c * part).max(1e-9),
            reno_slope: part,
            search: SHAPE.search * part,
            ..SHAPE
        });
    }

    /// Whether the share is an ordinary flow, whatever Tide finds.
    pub(super) fn is_whole(&self) -> bool {
        self.weight >= 1.0
    }

    /// Packets in flight; below 1, packets per RTT.
    pub(super) fn cwnd(&self) -> f64 {
        self.window.cwnd.max(self.window.minimum)
    }

    /// FILL ends with this window, packets.
    pub(super) fn enter(&mut self, window: f64) {
        self.follow();
        self.window.cwnd = self.window.cwnd.max(self.weight * window);
        (self.peak, self.rest) = (0.0, 0);
    }

    /// The window `whole` fills the path, packets. The share rises to w times that at once, since it grows slowly, but
    /// to at most [`LEAST`].
    pub(super) fn begin(&mut self, whole: f64) {
        self.window.cwnd = self.window.cwnd.max((self.weight * whole).min(LEAST));
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let before = self.cwnd();
        self.window.cwnd = before;
        let left = self.slow_start.on_ack(ack, &mut self.window);
        if before < self.window.cwnd {
            self.window.cwnd = before + self.weight * (self.window.cwnd - before);
        }
        // what was acknowledged beyond the share's window were probes
        self.cubic.on_ack(ack, left.min(before), &mut self.window);
    }

    /// A round of LISTEN has ended with this least queue, seconds.
    pub(super) fn on_round(&mut self, queue: f64, path: &Path) {
        if self.is_whole() {
            return;
        }
        if self.rest > 0 {
            // an empty queue may mean that competing flows are gone
            let over = self.rest == 1 || (queue >= self.peak && queue >= path.free_link_queue());
            (self.rest, self.peak) = (self.rest - 1, queue);
            if over {
                self.follow();
            }
            return;
        }
        self.peak = self.peak.max(queue);
        if queue < self.peak - (FALL * self.peak + 1e-3) {
            (self.falls, self.peak, self.rest) = (true, queue, REST);
        }
    }

    /// A fall of the queue, if there was one, is over: the share backs off, too. An ordinary flow would not see that,
    /// so it counts less, the larger the weight is.
    fn follow(&mut self) {
        if !mem::take(&mut self.falls) || mem::take(&mut self.paid) || self.is_whole() {
            return;
        }
        self.reduce_to(1.0 - (1.0 - BETA) * (1.0 - self.weight), false);
    }

    /// A loss, or a mark.
    pub(super) fn on_congestion(&mut self) {
        self.pay();
        self.reduce_to(BETA, true);
    }

    /// An own loss pays for the fall that shows, or for the next one.
    const fn pay(&mut self) {
        self.paid |= !self.falls;
        self.falls = false;
    }

    pub(super) fn on_timeout(&mut self) {
        self.pay();
        self.pause();
        self.cubic.on_timeout(&self.window);
        self.window.collapse(BETA * self.window.cwnd);
        self.window.cwnd = self.window.minimum;
    }

    pub(super) fn on_restart(&mut self, restart: &Restart) {
        (self.peak, self.rest, self.falls) = (0.0, 0, false);
        self.cubic.on_restart(restart);
        self.window.restart(restart);
    }

    /// Reduces the window to this part. `own`: for an own loss.
    fn reduce_to(&mut self, part: f64, own: bool) {
        self.cubic.set_fast_convergence(own);
        self.cubic.on_reduction(&self.window);
        self.window.reduce_to(part * self.window.cwnd);
        self.pause();
    }

    /// The queue that falls now is the same back-off.
    const fn pause(&mut self) {
        (self.peak, self.rest) = (0.0, REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use std::time::Duration;

    const FLOW: Flow = Flow { mss: 1000, initial_window: 10, seed: 0 };

    /// A share with a window of 100 packets.
    fn of_100(weight: f64) -> Share {
        let mut share = Share::new(&FLOW, weight);
        share.enter(100.0 / weight);
        share
    }

    /// The window in packets after an own loss at 100 packets, and `seconds` of full rounds of 50 ms.
    fn grown(weight: f64, seconds: u64) -> f64 {
        let mut share = of_100(weight);
        share.on_congestion();
        for round in 0..seconds * 20 {
            let now = Time::ZERO + Duration::from_millis(50 * round);
            let packets = share.cwnd() as u32;
            let rtt = Some(Duration::from_millis(50));
            share.on_ack(&Ack { now, rtt, packets, window_limited: true, ..Ack::default() });
        }
        share.cwnd()
    }

    #[test]
    fn it_grows_by_its_weight() {
        let grown = [0.05, 0.2, 0.5, 0.8, 1.0].map(|weight| grown(weight, 20));
        assert!(grown.is_sorted(), "{grown:?}");
        // CUBIC is back at 100 packets after cbrt(30/0.4) = 4.2 s, and 0.4 (20 - 4.2)^3 above at 20 s
        assert!((grown[4] - (100.0 + 0.4 * 15.8 * 15.8 * 15.8)).abs() < 60.0, "{grown:?}");
        assert!(grown[0] < 105.0, "{grown:?}");
    }

    #[test]
    fn what_stands_goes_with_the_weight() {
        let (mut raised, mut whole) = (Share::new(&FLOW, 0.25), Share::new(&FLOW, 1.0));
        for share in [&mut raised, &mut whole] {
            share.enter(100.0);
            share.on_congestion();
        }
        assert_eq!((raised.cwnd(), whole.cwnd()), (17.5, 70.0));
        raised.set_weight(1.0);
        assert_eq!(raised.cwnd(), 70.0);
        for round in 0..200 {
            let now = Time::ZERO + Duration::from_millis(50 * round);
            for share in [&mut raised, &mut whole] {
                let rtt = Some(Duration::from_millis(50));
                share.on_ack(&Ack { now, rtt, packets: 50, window_limited: true, ..Ack::default() });
            }
            assert!((raised.cwnd() - whole.cwnd()).abs() < 1e-9, "{round}: {} and {}", raised.cwnd(), whole.cwnd());
        }
        raised.set_weight(0.5);
        assert!((raised.cwnd() - whole.cwnd() / 2.0).abs() < 1e-9);
    }

    /// The window after rounds with these queues, in ms. The base RTT is 20 ms.
    fn after(share: &mut Share, queues: &[u32]) -> f64 {
        let mut path = Path::new(1000);
        path.on_sample(Time::ZERO, 20e-3, 100.0, false);
        queues.iter().for_each(|queue| share.on_round(f64::from(*queue) / 1e3, &path));
        share.cwnd()
    }

    #[test]
    fn the_back_off_of_others_is_its_own() {
        let cases: [(&[u32], i32); 9] = [
            (&[20, 15, 15], 1),
            // while the queue falls an own loss may still explain it
            (&[20, 15, 14, 13], 0),
            (&[20, 15, 14, 13, 12], 1),
            // less than 15 % and 1 ms
            (&[20, 17, 17, 17, 17], 0),
            // a further fall in the three rounds after is the same back-off
            (&[20, 15, 16, 12, 12, 12, 12], 1),
            (&[20, 15, 16, 16, 16, 16, 12, 12], 2),
            // the queue drains
            (&[40, 21, 21, 21], 1),
            (&[40, 30, 23, 23], 1),
            // competing flows may be gone
            (&[8, 0, 0, 0], 0),
        ];
        for (weight, (queues, falls)) in [0.1, 0.5, 1.0].into_iter().flat_map(|weight| cases.map(|case| (weight, case)))
        {
            let window = after(&mut of_100(weight), queues);
            let left = 100.0 * libm::pow(1.0 - 0.3 * (1.0 - weight), f64::from(falls));
            assert!((window - left).abs() < 1e-9, "{weight} {queues:?}: {window}");
        }
    }

    #[test]
    fn a_timeout_ends_what_it_waits_to_know() {
        let mut share = of_100(0.5);
        after(&mut share, &[20, 20, 15]);
        share.on_timeout();
        assert!((share.cwnd() - 0.5 * LEAST).abs() < 1e-9);
        after(&mut share, &[0, 0, 0, 0]);
        // slow start goes up to what the reduction left of the window
        assert!((share.window.ssthresh - 70.0).abs() < 1e-9, "{}", share.window.ssthresh);
    }

    #[test]
    fn a_loss_of_its_own_pays_for_the_next_back_off_of_others() {
        let back_off = [15, 15, 15, 15, 20, 20, 15, 15, 15, 15, 15];
        let mut share = of_100(0.5);
        share.on_congestion();
        assert!((share.cwnd() - 70.0).abs() < 1e-9, "{}", share.cwnd());
        let (paid, not) = (after(&mut share, &back_off), after(&mut share, &back_off));
        assert!((paid - 70.0).abs() < 1e-9 && (not - 59.5).abs() < 1e-9, "{paid}, {not}");
    }

    #[test]
    fn a_loss_of_its_own_pays_for_the_back_off_that_it_comes_with() {
        let mut share = of_100(0.5);
        after(&mut share, &[20, 20, 15]);
        share.on_congestion();
        assert!((after(&mut share, &[15, 15, 15, 15]) - 70.0).abs() < 1e-9);
        assert!((after(&mut share, &[20, 20, 15, 15]) - 59.5).abs() < 1e-9);
    }
}
