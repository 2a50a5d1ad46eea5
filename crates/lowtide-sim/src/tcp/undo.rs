// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding out that a recovery was not needed: its segments had only been late.

use lowtide_net::Time;

/// What was sent again in an episode, and what it proved.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// When the first retransmission of the episode was sent. `None`: there was none, or the answer is known.
    first: Option<Time>,
    /// Retransmissions of which no duplicate has been reported.
    unanswered: u64,
    /// An ACK has come that can tell by its echo.
    echoed: bool,
    active: bool,
    /// `snd_una` at the start of the episode.
    una: u64,
}

impl Undo {
    /// An episode begins.
    pub(super) fn start(&mut self, una: u64) {
        *self = Self { active: true, una, ..Self::default() };
    }

    /// The answer is known, or does not matter any more.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// A segment is sent again.
    pub(super) fn on_retransmission(&mut self, now: Time) {
        if self.active {
            self.first.get_or_insert(now);
            self.unanswered += 1;
        }
    }

    /// The receiver reports that it has got so many segments, up to `end`, twice. Returns whether every retransmission
    /// was a duplicate (RFC 3708).
    pub(super) fn on_dsack(&mut self, end: u64, segments: u64) -> bool {
        if self.first.is_none() || end <= self.una {
            return false;
        }
        self.unanswered = self.unanswered.saturating_sub(segments);
        self.unanswered == 0
    }

    /// An ACK advances `snd_una` and echoes the timestamp of the segment that made it do so. Returns whether that was
    /// sent before the first retransmission (Eifel, RFC 3522); only the first such ACK can tell.
    pub(super) fn on_advance(&mut self, echo: Time) -> bool {
        let Some(first) = self.first.filter(|_| !self.echoed) else { return false };
        self.echoed = echo >= first;
        !self.echoed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn an_old_echo_proves_that_the_original_arrived() {
        let mut undo = Undo::default();
        assert!(!undo.on_advance(at(0)), "no episode");
        undo.start(0);
        assert!(!undo.on_advance(at(0)), "nothing was sent again");
        undo.on_retransmission(at(100));
        undo.on_retransmission(at(110));
        assert!(undo.on_advance(at(99)));
        assert!(!undo.on_advance(at(100)), "the retransmission arrived");
        assert!(!undo.on_advance(at(99)), "a second ACK does not count");
    }

    #[test]
    fn a_duplicate_of_every_retransmission_proves_it_too() {
        let mut undo = Undo::default();
        undo.start(1000);
        (0..3).for_each(|_| undo.on_retransmission(at(100)));
        assert!(!undo.on_dsack(2000, 2));
        assert!(!undo.on_dsack(1000, 1), "of before the episode");
        assert!(undo.on_dsack(3000, 1));
        undo.stop();
        assert!(!undo.on_dsack(3000, 1));
    }
}
