// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a full link a weight is worth: the window of an ordinary CUBIC flow that grows less and gives way more.

use std::mem;

use super::{BEGIN, path::Path};
use crate::{
    Ack, Flow, Restart,
    part::{Cubic, CubicShape, HyStartKind, SlowStart, Window},
};

/// A window runs with a weight while competing flows hold the queue, and rests while Tide fills the link by itself. At a weight of 1 it runs always, and
/// is CUBIC's as Linux has it.
///
/// A flow that grows slowly is almost never the one whose packet finds a full queue, so its losses alone would not make its rate follow its
/// weight. Therefore it takes the back-offs of competing flows for its own: both then have the same epochs, and share by how fast they grow. An ordinary
/// flow does not see them, so they count the less, the more the weight is. A loss of its own has paid for the one that it waits to know, or for
/// the next of them: otherwise it would back off more often than the others do.
#[derive(Clone, Debug)]
pub(super) struct Share {
    weight: f64,
    cubic: Cubic,
    slow_start: SlowStart,
    /// Packets.
    window: Window,
    /// The greatest queue of a round since the latest reduction, seconds; while it rests, that of the latest round.
    peak: f64,
    /// Rounds until a fall of the queue counts again, and until one that it waits to know is over at the latest.
    rest: u32,
    /// The queue falls: a loss of its own may still come of it.
    falls: bool,
    /// The next back-off of others is paid for.
    paid: bool,
}

/// CUBIC's (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// What it takes for its own gives newcomers their room already: fast convergence is for losses of its own.
const SHAPE: CubicShape = CubicShape { fast_convergence: false, ..CubicShape::LINUX };
/// The window from which its slow start ends by delay or ACK trains (Linux).
const LOW_WINDOW: f64 = 16.0;
/// The least window of an ordinary flow.
const LEAST: f64 = 2.0;
/// A packet in sixteen round trips is as good as nothing.
const SLOWEST: f64 = 1.0 / 16.0;
/// A queue that falls by so much, and a millisecond, has lost somebody.
const FALL: f64 = 0.15;
/// Rounds that one back-off of others can take to show.
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

    /// What stands goes with the weight at once, since small windows take long to grow. Growth goes with the weight to the power 1.2: so the
    /// share of a link beside one CUBIC flow is nearly the weight's.
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

    /// Whether it is an ordinary flow, whatever is believed of the link.
    pub(super) fn is_whole(&self) -> bool {
        self.weight >= 1.0
    }

    /// Packets that may be in flight, or the part of one for each round trip.
    pub(super) fn cwnd(&self) -> f64 {
        self.window.cwnd.max(self.window.minimum)
    }

    /// Tide leaves a link that it filled with this window.
    pub(super) fn enter(&mut self, window: f64) {
        self.follow();
        self.window.cwnd = self.window.cwnd.max(self.weight * window);
        (self.peak, self.rest) = (0.0, 0);
    }

    /// This window fills the path. Its part of that at once, as a small one takes long to grow, but no more than an ordinary flow has at the least.
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
        // the rest was probes
        self.cubic.on_ack(ack, left.min(before), &mut self.window);
    }

    /// A round is over that found at least this queue, seconds.
    pub(super) fn on_round(&mut self, queue: f64, path: &Path) {
        if self.is_whole() {
            return;
        }
        if self.rest > 0 {
            // an empty queue may stay so: then Tide fills the link by itself
            let over = self.rest == 1 || (queue >= self.peak && queue >= path.middle());
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

    /// A fall of the queue is over, if there was one. What only a scavenger would heed counts the less, the more the weight is.
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

    /// A loss of its own pays for the fall that is waited for, or for the next.
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

    /// This part is left of the window.
    fn reduce_to(&mut self, part: f64, own: bool) {
        self.cubic.set_fast_convergence(own);
        self.cubic.on_reduction(&self.window);
        self.window.reduce_to(part * self.window.cwnd);
        self.pause();
    }

    /// What falls now is the same back-off.
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

    /// The window after so many seconds of full rounds of 50 ms, from 100 packets.
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
        // CUBIC is where it was after cbrt(30/0.4) = 4.2 s, and 0.4 (20 - 4.2)^3 beyond at 20 s
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

    /// The window after rounds with these queues, in milliseconds. The empty round trip is 20.
    fn after(share: &mut Share, queues: &[u32]) -> f64 {
        let mut path = Path::new(1000);
        path.on_sample(Time::ZERO, 20e-3, 100.0);
        queues.iter().for_each(|queue| share.on_round(f64::from(*queue) / 1e3, &path));
        share.cwnd()
    }

    #[test]
    fn the_back_off_of_others_is_its_own() {
        let cases: [(&[u32], i32); 9] = [
            (&[20, 15, 15], 1),
            // as long as it falls a loss of its own may come of it
            (&[20, 15, 14, 13], 0),
            (&[20, 15, 14, 13, 12], 1),
            // less than 15 % and a millisecond
            (&[20, 17, 17, 17, 17], 0),
            // what goes on falling in the three rounds after is the same back-off
            (&[20, 15, 16, 12, 12, 12, 12], 1),
            (&[20, 15, 16, 16, 16, 16, 12, 12], 2),
            // a drain
            (&[40, 21, 21, 21], 1),
            (&[40, 30, 23, 23], 1),
            // somebody may be gone
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
        // slow start goes on to what was left of the window
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
