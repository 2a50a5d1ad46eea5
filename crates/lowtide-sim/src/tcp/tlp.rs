// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tail loss probes (RFC 8985, section 7).

use std::time::Duration;

/// `TLP.max_ack_delay`: the longest time that a receiver holds an ACK back (section 7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout before the first round-trip sample.
const INITIAL_PTO: Duration = Duration::from_secs(1);

/// The state of probing.
#[derive(Clone, Debug, Default)]
pub(super) struct Tlp {
    /// `TLP.end_seq` and `TLP.is_retrans` of a probe that is not yet answered.
    probe: Option<(u64, bool)>,
    /// No round-trip sample was taken since the last probe.
    waits_for_sample: bool,
}

impl Tlp {
    /// Whether a probe may be sent.
    pub(super) const fn may_probe(&self) -> bool {
        self.probe.is_none() && !self.waits_for_sample
    }

    /// The probe timeout (section 7.2). `srtt` in nanoseconds, 0: unknown.
    pub(super) fn pto(srtt: u64, segments: usize) -> Duration {
        let pto = if srtt == 0 { INITIAL_PTO } else { Duration::from_nanos(2 * srtt) };
        if segments == 1 { pto + MAX_ACK_DELAY } else { pto }
    }

    /// A probe was sent; `nxt` is `snd_nxt` after it.
    pub(super) const fn on_probe(&mut self, nxt: u64, is_retrans: bool) {
        self.probe = Some((nxt, is_retrans));
        self.waits_for_sample = true;
    }

    /// A round-trip sample was taken.
    pub(super) const fn on_sample(&mut self) {
        self.waits_for_sample = false;
    }

    /// A recovery began; it repairs what the probe was for.
    pub(super) const fn cancel(&mut self) {
        self.probe = None;
    }

    /// An ACK arrived (section 7.4). `dsack_end`: the end of the duplicate that it reports; `duplicate`: it says
    /// nothing new at all. Returns whether the probe has repaired a loss that was not noticed otherwise.
    pub(super) fn on_ack(&mut self, ack: u64, dsack_end: Option<u64>, duplicate: bool) -> bool {
        let Some((end_seq, is_retrans)) = self.probe else { return false };
        if ack < end_seq {
            return false;
        }
        let repaired = is_retrans && dsack_end != Some(end_seq) && ack > end_seq;
        if !is_retrans || dsack_end == Some(end_seq) || repaired || duplicate {
            self.probe = None;
        }
        repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_two_round_trips_and_the_delay_of_a_single_ack() {
        assert_eq!(Tlp::pto(0, 2), Duration::from_secs(1));
        assert_eq!(Tlp::pto(40_000_000, 2), Duration::from_millis(80));
        assert_eq!(Tlp::pto(40_000_000, 1), Duration::from_millis(280));
    }

    #[test]
    fn a_probe_of_new_data_shows_no_loss() {
        let mut tlp = Tlp::default();
        tlp.on_probe(1000, false);
        assert!(!tlp.may_probe());
        assert!(!tlp.on_ack(1000, None, false));
        assert!(!tlp.may_probe(), "not without a new sample");
        tlp.on_sample();
        assert!(tlp.may_probe());
    }

    #[test]
    fn a_repeated_segment_tells_by_what_follows_whether_the_first_copy_was_lost() {
        let probed = || {
            let mut tlp = Tlp::default();
            tlp.on_probe(1000, true);
            assert!(!tlp.on_ack(900, None, false));
            assert!(!tlp.on_ack(1000, None, false), "either copy");
            tlp
        };
        assert!(probed().on_ack(2000, None, false), "only one copy arrived");
        let mut both = probed();
        assert!(!both.on_ack(1000, Some(1000), true));
        assert!(!both.on_ack(2000, None, false), "both arrived");
        let mut duplicate = probed();
        assert!(!duplicate.on_ack(1000, None, true));
        assert!(!duplicate.on_ack(2000, None, false));
    }
}
