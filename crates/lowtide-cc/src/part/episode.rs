// SPDX-License-Identifier: MIT OR Apache-2.0
//! One reduction for each window of data.

use crate::{Congestion, Signal};

/// Which signals reduce the window, and which reductions can have been a mistake.
///
/// A loss among what was in flight when marks, or a signal that the sender made up, lowered the window is answered
/// already (RFC 3168, section 6.1.2; Linux stays in the reduction that it is in). A timeout never is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Episode {
    /// While a reduction without a loss goes on: `snd_nxt` at its start.
    end: Option<u64>,
    undoable: bool,
}

impl Episode {
    /// Whether this signal is to reduce the window.
    pub fn begin(&mut self, congestion: &Congestion) -> bool {
        let loss = matches!(congestion.signal, Signal::Loss | Signal::Timeout);
        let answered = congestion.signal == Signal::Loss && self.end.is_some_and(|end| congestion.una <= end);
        if answered {
            return false;
        }
        self.end = (!loss).then_some(congestion.nxt);
        self.undoable = loss;
        true
    }

    /// The transport's episode is over.
    pub const fn finish(&mut self) {
        self.end = None;
    }

    /// The law has reduced the window by itself, for a reason that stands even if the loss before was none.
    pub const fn stands(&mut self) {
        self.undoable = false;
    }

    /// The latest loss or timeout was none: whether that is what the window was reduced for. It is undone once.
    pub const fn undo(&mut self) -> bool {
        self.end = None;
        std::mem::replace(&mut self.undoable, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn at(signal: Signal, una: u64) -> Congestion {
        Congestion { now: Time::ZERO, signal, una, nxt: una + 10, in_flight: 10 }
    }

    #[test]
    fn a_loss_in_the_window_of_a_mark_is_answered() {
        for signal in [Signal::Ecn, Signal::Phantom] {
            let mut episode = Episode::default();
            assert!(episode.begin(&at(signal, 0)));
            assert!(!episode.begin(&at(Signal::Loss, 10)));
            assert!(!episode.undo(), "the mark was there");
            assert!(episode.begin(&at(signal, 20)));
            assert!(episode.begin(&at(Signal::Timeout, 25)));
            assert!(episode.begin(&at(Signal::Loss, 25)));
            assert!(episode.begin(&at(signal, 40)));
            assert!(episode.begin(&at(Signal::Loss, 51)));
            assert!(episode.begin(&at(signal, 60)));
            episode.finish();
            assert!(episode.begin(&at(Signal::Loss, 60)));
        }
    }

    #[test]
    fn losses_and_timeouts_can_be_undone_once() {
        for (signal, undoable) in [(Signal::Loss, true), (Signal::Timeout, true), (Signal::Ecn, false)] {
            let mut episode = Episode::default();
            assert!(episode.begin(&at(signal, 0)));
            let mut stands = episode;
            stands.stands();
            assert!(!stands.undo());
            assert_eq!((episode.undo(), episode.undo()), (undoable, false));
        }
    }
}
