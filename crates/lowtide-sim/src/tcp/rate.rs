// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivery-rate samples (draft-ietf-ccwg-bbr, section 4.1.1).

use lowtide_cc::{Lost, RateSample};
use lowtide_net::Time;

/// What was known when a segment was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    /// `P.delivered`.
    delivered: u64,
    /// `P.delivered_time`.
    delivered_at: Time,
    /// `P.first_send_time`.
    first_sent_at: Time,
    /// `P.tx_in_flight`: with the segment itself.
    in_flight: u64,
    lost: u64,
    marked: u64,
    /// `P.is_app_limited`.
    app_limited: bool,
}

/// The newest segment that an ACK delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    sent: Time,
    end: u64,
    at_send: Snapshot,
}

/// The connection's counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// `C.delivered`: bytes delivered so far.
    delivered: u64,
    /// `C.delivered_time`.
    delivered_at: Time,
    /// `C.first_send_time`.
    first_sent_at: Time,
    /// `C.app_limited`: samples are the application's until so much is delivered; 0: they are not.
    app_limited: u64,
    lost: u64,
    marked: u64,
}

impl Rate {
    /// A segment of `bytes` is sent while `in_flight` bytes are in flight.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight + bytes,
            lost: self.lost,
            marked: self.marked,
            app_limited: self.app_limited != 0,
        }
    }

    /// The application has no more data, and `in_flight` bytes are on their way.
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// A segment was delivered that was last sent at `sent`.
    pub(super) fn on_delivered(
        &mut self,
        now: Time,
        bytes: u64,
        sent: Time,
        end: u64,
        at_send: &Snapshot,
        newest: &mut Option<Newest>,
    ) {
        self.delivered += bytes;
        self.delivered_at = now;
        if newest.as_ref().is_none_or(|newest| (sent, end) > (newest.sent, newest.end)) {
            *newest = Some(Newest { sent, end, at_send: *at_send });
        }
    }

    /// A segment of so many bytes that was last sent at `sent` was declared lost; this was known when it was sent.
    pub(super) const fn on_lost(
        &mut self,
        now: lowtide_cc::Time,
        sent: lowtide_cc::Time,
        bytes: u64,
        at_send: &Snapshot,
    ) -> Lost {
        self.lost += bytes;
        Lost {
            now,
            sent,
            bytes,
            in_flight_at_send: at_send.in_flight,
            lost_since_send: self.lost - at_send.lost,
            app_limited: at_send.app_limited,
        }
    }

    /// So many bytes arrived with CE.
    pub(super) const fn on_marked(&mut self, bytes: u64) {
        self.marked += bytes;
    }

    /// The sample of an ACK. One over less than the smallest round-trip time is none: the data came in a burst after
    /// ACKs had been held up, or a retransmission was mistaken for its original.
    pub(super) fn sample(&mut self, newest: Option<&Newest>, min_rtt: Option<u64>) -> Option<RateSample> {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Newest { sent, at_send, .. } = newest?;
        self.first_sent_at = *sent;
        let send_elapsed = *sent - at_send.first_sent_at;
        let ack_elapsed = self.delivered_at - at_send.delivered_at;
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval.as_nanos() < u128::from(min)) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - at_send.delivered,
            interval,
            prior_delivered: at_send.delivered,
            total_delivered: self.delivered,
            in_flight_at_send: at_send.in_flight,
            lost_since_send: self.lost - at_send.lost,
            marked_since_send: self.marked - at_send.marked,
            app_limited: at_send.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_steady_flow_is_measured_by_its_acks() {
        // A window of ten segments leaves in one burst; the bottleneck passes one each millisecond, the RTT is 20 ms.
        let mut rate = Rate::default();
        let first: Vec<_> = (0..10).map(|i| rate.on_sent(at(0), 1000, 1000 * i)).collect();
        let mut second = Vec::new();
        for i in 0..10 {
            let mut newest = None;
            let end = 1000 * (i + 1);
            rate.on_delivered(at(20 + i), 1000, at(0), end, &first[i as usize], &mut newest);
            let sample = rate.sample(newest.as_ref(), Some(20_000_000)).expect("it lasted a round trip");
            assert_eq!((sample.delivered, sample.interval), (end, Duration::from_millis(20 + i)));
            second.push(rate.on_sent(at(20 + i), 1000, 9000));
        }
        let mut newest = None;
        rate.on_delivered(at(45), 10_000, at(29), 20_000, &second[9], &mut newest);
        let sample = rate.sample(newest.as_ref(), Some(20_000_000)).expect("sending took longer than a round trip");
        assert_eq!((sample.delivered, sample.interval), (10_000, Duration::from_millis(29)), "16 ms by the ACKs");
        assert_eq!(rate.sample(newest.as_ref(), Some(30_000_000)), None, "less than a round trip");
    }

    #[test]
    fn what_an_application_held_back_is_marked() {
        let mut rate = Rate::default();
        assert!(!rate.on_sent(at(0), 1000, 0).app_limited);
        rate.on_app_limited(1000);
        let limited = rate.on_sent(at(5), 1000, 1000);
        assert!(limited.app_limited);
        let mut newest = None;
        rate.on_delivered(at(25), 2000, at(5), 2000, &limited, &mut newest);
        let sample = rate.sample(newest.as_ref(), Some(20_000_000)).expect("a sample");
        assert!(sample.app_limited);
        assert!(!rate.on_sent(at(25), 1000, 0).app_limited, "all that was in flight then is delivered");
    }

    #[test]
    fn losses_and_marks_are_counted_from_the_sending_on() {
        let mut rate = Rate::default();
        let earlier = rate.on_sent(at(0), 1000, 0);
        rate.on_lost(lowtide_cc::Time::ZERO, lowtide_cc::Time::ZERO, 500, &earlier);
        let snapshot = rate.on_sent(at(0), 1000, 0);
        let lost = rate.on_lost(lowtide_cc::Time::ZERO, lowtide_cc::Time::ZERO, 3000, &snapshot);
        assert_eq!((lost.bytes, lost.lost_since_send, lost.in_flight_at_send), (3000, 3000, 1000));
        rate.on_marked(1000);
        let mut newest = None;
        rate.on_delivered(at(20), 1000, at(0), 1000, &snapshot, &mut newest);
        let sample = rate.sample(newest.as_ref(), None).expect("a sample");
        assert_eq!((sample.lost_since_send, sample.marked_since_send, sample.in_flight_at_send), (3000, 1000, 1000));
    }
}
