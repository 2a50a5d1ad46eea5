// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another connection has measured as the empty round trip: a hint, until the evidence is against it.

use crate::Time;
use std::time::Duration;

/// A base round trip from before. Where it is right, what is above it is somebody's queue, and that of competing flows moves; where the route has
/// become longer, round trips stand still. Times are seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    base: f64,
    /// When the connection had its first round trip.
    given: Option<Time>,
    /// Since when round trips stand still, in how many spans, and the least and the greatest of these.
    still: Time,
    spans: u32,
    least: f64,
    most: f64,
}

impl Hint {
    /// Round trips that stand still for so long are no queue. A CUBIC flow's in a large buffer may for some seconds, where its curve is flat.
    const STILL: Duration = Duration::from_secs(10);
    /// And for so many spans.
    const SPANS: u32 = 6;
    /// A hint that no round trip has come down to by then is wrong in any case: a longer route may have noise.
    const LIMIT: Duration = Duration::from_secs(60);

    pub(super) const fn new(base: Duration) -> Self {
        Self { base: base.as_secs_f64(), given: None, still: Time::ZERO, spans: 0, least: 0.0, most: 0.0 }
    }

    pub(super) const fn base(&self) -> f64 {
        self.base
    }

    /// Whether the round trips say that it is too small. `measured`: the least of them; `span`: the least of a span that has just ended; `own`: a
    /// movement below this is none.
    pub(super) fn is_wrong(&mut self, now: Time, measured: f64, span: Option<f64>, own: f64) -> bool {
        let given = *self.given.get_or_insert(now);
        if measured <= self.base {
            return false;
        }
        if let Some(rtt) = span {
            self.look(now, rtt, own.min((measured - self.base) / 2.0));
        }
        self.spans >= Self::SPANS && now - self.still >= Self::STILL || now - given >= Self::LIMIT
    }

    fn look(&mut self, now: Time, rtt: f64, movement: f64) {
        self.spans += 1;
        (self.least, self.most) = (self.least.min(rtt), self.most.max(rtt));
        if self.spans == 1 || self.most - self.least > movement {
            (self.still, self.spans, self.least, self.most) = (now, 1, rtt, rtt);
        }
    }
}
