// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proportional Rate Reduction (RFC 9937): the way from the amount in flight down to the new window.

/// An episode of reduction. All amounts are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// `RecoverFS`: in flight when the episode began.
    recover_fs: u64,
    /// `prr_delivered`: delivered in the episode.
    delivered: u64,
    /// `prr_out`: sent in the episode.
    out: u64,
}

impl Prr {
    /// An episode begins with so much in flight, counted before the ACK that begins it.
    pub(super) fn new(in_flight: u64) -> Self {
        Self { recover_fs: in_flight.max(1), delivered: 0, out: 0 }
    }

    /// The congestion window after an ACK that delivered something or begins the episode (RFC 9937, section 6.2).
    ///
    /// `safe`: it advanced `snd_una` and showed no further loss. What the proportional part lets go is rounded up to
    /// whole segments, as a sender that counts segments does.
    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, safe: bool, mss: u64) -> u64 {
        self.delivered += delivered;
        let mut sndcnt = if in_flight > ssthresh {
            let due = u128::from(self.delivered) * u128::from(ssthresh);
            let due = due.div_ceil(u128::from(self.recover_fs)) as u64;
            due.saturating_sub(self.out).div_ceil(mss) * mss
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(delivered) + if safe { mss } else { 0 };
            bound.min(ssthresh - in_flight)
        };
        if self.out == 0 && sndcnt == 0 {
            sndcnt = mss; // a fast retransmit goes out in any case
        }
        in_flight + sndcnt
    }

    /// So much was sent.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An episode in segments of one byte: each ACK delivers one segment, whatever the window allows is sent.
    fn episode(mut in_flight: u64, lost: u64, ssthresh: u64, acks: usize) -> Vec<(u64, bool)> {
        let mut prr = Prr::new(in_flight);
        in_flight -= lost;
        let step = |_| {
            in_flight -= 1;
            let cwnd = prr.on_ack(1, in_flight, ssthresh, false, 1);
            let sent = cwnd > in_flight;
            prr.on_sent(cwnd - in_flight);
            in_flight = cwnd;
            (cwnd, sent)
        };
        (0..acks).map(step).collect()
    }

    #[test]
    fn one_loss_of_twenty_segments_is_walked_down_evenly() {
        // RFC 6937, figure 1, from the third duplicate ACK on: 20 in flight, of which one is lost; the target is 10.
        let (cwnd, sent): (Vec<u64>, Vec<bool>) = episode(20, 1, 10, 16).into_iter().unzip();
        assert_eq!(cwnd, [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11]);
        assert_eq!(sent, [true, false].repeat(8), "every second ACK sends");
    }

    #[test]
    fn after_a_burst_loss_what_is_delivered_is_sent() {
        // RFC 6937, figure 2: 15 of 20 segments are lost, so that less is in flight than the target: packets are
        // conserved.
        assert_eq!(episode(20, 15, 10, 4), [(5, true); 4]);
    }

    #[test]
    fn safe_acks_grow_to_the_target_as_in_slow_start() {
        let mut prr = Prr::new(20);
        prr.on_sent(1);
        assert_eq!(prr.on_ack(1, 4, 10, true, 1), 6, "one for the delivery and one more");
        assert_eq!(prr.on_ack(9, 4, 10, true, 1), 10, "no further than the target");
    }

    #[test]
    fn the_first_ack_always_lets_a_retransmission_go() {
        assert_eq!(Prr::new(20).on_ack(0, 10, 10, false, 1), 11);
        assert_eq!(Prr::new(20_000).on_ack(1_000, 18_000, 10_000, false, 1_000), 19_000, "whole segments");
    }
}
