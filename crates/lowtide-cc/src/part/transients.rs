// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acceleration and overload mode as one part of a scalable law.

use super::{Acceleration, Marks, Overload, Rounds};
use crate::Ack;

/// Misund's two modes for transients, of which a law has both, one or none.
///
/// The law multiplies its additive increase by [`scale`](Self::scale), reports each reduction, and multiplies its
/// window by what [`on_ack`](Self::on_ack) returns. Both modes count the same rounds: by sequence numbers, from the
/// first ACK on.
#[derive(Clone, Debug)]
pub struct Transients {
    acceleration: Option<Acceleration>,
    overload: Option<Overload>,
    rounds: Rounds,
    marks: Marks,
    /// Whether the window was reduced in this round.
    reacted: bool,
}

/// The law's state as the modes see it.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// The window, segments.
    pub cwnd: f64,
    /// Whether it grows by slow start.
    pub slow_start: bool,
    /// Whether the law recovers from a loss.
    pub recovering: bool,
}

impl Transients {
    /// These modes.
    pub fn new(acceleration: Option<Acceleration>, overload: Option<Overload>) -> Self {
        Self { acceleration, overload, rounds: Rounds::default(), marks: Marks::default(), reacted: false }
    }

    /// What the additive increase is multiplied by; 1 without acceleration.
    pub fn scale(&self) -> f64 {
        self.acceleration.as_ref().map_or(1.0, Acceleration::scale)
    }

    /// An ACK arrived, and the law has grown its window by it. Returns the factor to multiply the window by, if it
    /// ended a round that was overload; that is a reaction of its own, not to be reported.
    ///
    /// A loss recovery is neither open loop nor overload: its rounds are not judged.
    pub fn on_ack(&mut self, ack: &Ack, phase: Phase) -> Option<f64> {
        self.marks.on_ack(ack);
        if let Some(overload) = &mut self.overload {
            overload.on_ack(ack);
        }
        if !self.rounds.next(ack.una, ack.nxt) {
            return None;
        }
        let fraction = self.marks.take();
        let reacted = std::mem::replace(&mut self.reacted, false);
        if phase.recovering {
            self.reset();
            return None;
        }
        if let Some(left) = self.overload.as_mut().and_then(|overload| overload.on_round(fraction)) {
            self.end_cycle(phase.slow_start);
            return Some(left);
        }
        if let Some(acceleration) = &mut self.acceleration
            && !phase.slow_start
            && !reacted
            && ack.window_limited
        {
            acceleration.on_round(phase.cwnd, ack.srtt);
        }
        None
    }

    /// The law reduced its window to `left` of it, because of a mark or a loss. `slow_start`: that ended slow start.
    pub fn on_reaction(&mut self, left: f64, slow_start: bool) {
        self.end_cycle(slow_start);
        if let Some(overload) = &mut self.overload {
            overload.on_reaction(left, !slow_start);
        }
    }

    fn end_cycle(&mut self, slow_start: bool) {
        self.reacted = true;
        match &mut self.acceleration {
            Some(acceleration) if slow_start => acceleration.reset(),
            Some(acceleration) => acceleration.on_reaction(),
            None => {}
        }
    }

    /// A cycle is broken off, by a timeout or by idleness.
    pub fn reset(&mut self) {
        if let Some(acceleration) = &mut self.acceleration {
            acceleration.reset();
        }
        if let Some(overload) = &mut self.overload {
            overload.reset();
        }
    }

    /// Whether marks reported now are answered already by an overload's reduction, so that the law ignores them.
    pub fn is_answered(&self) -> bool {
        self.overload.as_ref().is_some_and(Overload::is_answered)
    }

    /// Shows the modes' state to a probe.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(acceleration) = &self.acceleration {
            acceleration.inspect(show);
        }
        if let Some(overload) = &self.overload {
            overload.inspect(show);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::{Judged, OverloadSettings, Overshoot};
    use std::time::Duration;

    const SETTINGS: OverloadSettings = OverloadSettings {
        q: Overshoot::MILLISECOND,
        gain: 1.0 / 16.0,
        q_aqm: Duration::ZERO,
        base_window: Duration::ZERO,
        judged: Judged::Fresh,
    };
    const AVOIDANCE: Phase = Phase { cwnd: 100.0, slow_start: false, recovering: false };

    fn both() -> Transients {
        let acceleration = Acceleration::new(Overshoot::MILLISECOND, 1.0 / 16.0, 0, false);
        Transients::new(Some(acceleration), Some(Overload::new(SETTINGS)))
    }

    /// A round of one ACK with this round-trip time.
    fn round(transients: &mut Transients, ms: u64, marked: u32, limited: bool, phase: Phase) -> Option<f64> {
        let rtt = Duration::from_millis(ms);
        transients.rounds.start(0);
        let ack =
            Ack { una: 1, packets: 10, marked, rtt: Some(rtt), srtt: rtt, window_limited: limited, ..Ack::default() };
        transients.on_ack(&ack, phase)
    }

    fn inner(transients: &Transients, name: &str) -> f64 {
        let mut found = f64::NAN;
        transients.inspect(&mut |key, value| {
            if key == name {
                found = value;
            }
        });
        found
    }

    #[test]
    fn only_full_rounds_of_congestion_avoidance_count() {
        let mut transients = both();
        let c = |transients: &Transients| inner(transients, "accel_c");
        round(&mut transients, 15, 0, true, AVOIDANCE);
        assert_eq!(c(&transients), 1.0);
        round(&mut transients, 15, 0, false, AVOIDANCE); // the window did not limit
        round(&mut transients, 15, 0, true, Phase { slow_start: true, ..AVOIDANCE });
        assert_eq!(c(&transients), 1.0);
        transients.on_reaction(0.9, false);
        round(&mut transients, 15, 0, true, AVOIDANCE); // there was a reaction in it
        assert_eq!(c(&transients), 0.0);
        round(&mut transients, 15, 0, true, AVOIDANCE);
        assert_eq!(c(&transients), 1.0);
        round(&mut transients, 15, 0, true, Phase { recovering: true, ..AVOIDANCE });
        assert_eq!(c(&transients), 0.0);
    }

    #[test]
    fn the_end_of_slow_start_is_no_cycle() {
        for (slow_start, average) in [(true, 0.0), (false, 1.0)] {
            let mut transients = both();
            round(&mut transients, 15, 0, true, AVOIDANCE);
            transients.on_reaction(0.9, slow_start);
            assert_eq!((inner(&transients, "accel_c"), inner(&transients, "accel_i_a")), (0.0, average));
        }
    }

    #[test]
    fn an_overload_is_a_reaction_and_answers_the_next_round() {
        let mut transients = both();
        round(&mut transients, 15, 0, true, AVOIDANCE);
        transients.on_reaction(0.9, false);
        round(&mut transients, 15, 1, true, AVOIDANCE);
        round(&mut transients, 15, 1, true, AVOIDANCE);
        let left = round(&mut transients, 30, 1, true, AVOIDANCE).unwrap();
        assert!((left - 0.5).abs() < 1e-9);
        assert_eq!(inner(&transients, "accel_c"), 0.0);
        assert!(transients.is_answered());
        round(&mut transients, 30, 1, true, AVOIDANCE);
        assert!(!transients.is_answered());
        // But not while a loss is recovered from.
        assert_eq!(round(&mut transients, 60, 10, true, Phase { recovering: true, ..AVOIDANCE }), None);
    }

    #[test]
    fn without_modes_nothing_changes() {
        let mut transients = Transients::new(None, None);
        assert_eq!(round(&mut transients, 500, 10, true, AVOIDANCE), None);
        assert_eq!((transients.scale(), transients.is_answered()), (1.0, false));
    }
}
