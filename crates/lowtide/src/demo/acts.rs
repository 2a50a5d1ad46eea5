// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link and the four acts on it: who sends, how, and how to say it.

/// Capacity of the link, counted in IP bytes.
pub(super) const LINK_MBPS: u64 = 20;
/// Round-trip time of the empty link.
pub(super) const RTT_MS: u64 = 40;
/// Between two samples of the rates, in seconds.
pub(super) const SAMPLE: f64 = 0.5;

/// Part of the link that the last act's deadline needs.
const NEEDED_PART: f64 = 0.32;
/// An act whose transfer is late lasts so many times its length at most.
const PATIENCE: f64 = 1.5;

/// What happens beside the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    /// Nothing.
    Absent,
    /// A transfer by a program as it is.
    Ordinary,
    /// A transfer under `lowtide run` whose deadline is hours away.
    FarDeadline,
    /// A transfer under `lowtide run` that is due at the end of the act.
    NearDeadline,
}

/// One act.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Act {
    /// 1 to 4.
    pub(super) number: usize,
    /// What happens beside the foreground.
    pub(super) bulk: Bulk,
    /// Length in seconds.
    pub(super) seconds: u64,
}

impl Act {
    /// All four, of this length.
    pub(super) fn all(seconds: u64) -> Vec<Act> {
        let bulks = [Bulk::Absent, Bulk::Ordinary, Bulk::FarDeadline, Bulk::NearDeadline];
        let act = |(index, bulk)| Act { number: index + 1, bulk, seconds };
        bulks.into_iter().enumerate().map(act).collect()
    }

    /// A few words, for the table and the picture.
    pub(super) fn name(&self) -> String {
        match self.bulk {
            Bulk::Absent => "foreground alone".to_owned(),
            Bulk::Ordinary => "+ ordinary bulk transfer".to_owned(),
            Bulk::FarDeadline => "+ lowtide run, due in 8 h".to_owned(),
            Bulk::NearDeadline => format!("+ lowtide run, due in {} s", self.seconds),
        }
    }

    /// What happens, for a reader who is new to it.
    pub(super) fn sentence(&self) -> String {
        match self.bulk {
            Bulk::Absent => "The foreground has the link to itself.".to_owned(),
            Bulk::Ordinary => "A bulk transfer joins, sent as programs send today (CUBIC).".to_owned(),
            Bulk::FarDeadline => "The bulk transfer again, under lowtide run, due in 8 hours.".to_owned(),
            Bulk::NearDeadline => format!(
                "Under lowtide run again, but {:.0} MB are due in {} s: a third of the link.",
                self.due_bytes() as f64 / 1e6,
                self.seconds
            ),
        }
    }

    /// What the bulk transfer sends until the near deadline.
    pub(super) fn due_bytes(&self) -> u64 {
        (NEEDED_PART * self.link_bytes()) as u64
    }

    /// More than the act can carry, and nothing compared to what eight hours can.
    pub(super) fn far_bytes(&self) -> u64 {
        (2.0 * self.link_bytes()) as u64
    }

    /// The latest end, in seconds.
    pub(super) fn latest_end(&self) -> f64 {
        match self.bulk {
            Bulk::NearDeadline => PATIENCE * self.seconds as f64,
            _ => self.seconds as f64,
        }
    }

    /// What the link carries in this act, in bytes.
    fn link_bytes(&self) -> f64 {
        (LINK_MBPS * 125_000 * self.seconds) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_amounts_fit_their_deadlines() {
        let [_, _, far, near] = Act::all(25).try_into().unwrap();
        assert_eq!(near.due_bytes(), 20_000_000);
        assert_eq!(near.latest_end(), 37.5);
        assert_eq!(far.latest_end(), 25.0);
        // eight hours' rate for the far deadline is below a hundredth of the link
        assert!((far.far_bytes() as f64) < 0.01 * 8.0 * 3600.0 * (LINK_MBPS * 125_000) as f64);
        assert!(near.sentence().contains("20 MB are due in 25 s"));
    }
}
