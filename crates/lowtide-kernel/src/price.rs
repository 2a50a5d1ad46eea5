// SPDX-License-Identifier: MIT OR Apache-2.0
//! The price that the network asks: real congestion signals per packet (q of the framework, eq. 5; P\[loss\] of its
//! Fig. 3). *The framework* is the paper of that name in `docs/deviations.md`.

/// Gain of the averages over update intervals: the weight of the newest.
const GAIN: f64 = 0.25;

/// p_loss: loss *events* per segment, as an average over update intervals. Events and segments are averaged apart, so
/// that an interval with few segments counts for little.
#[derive(Debug, Default)]
pub(crate) struct LossPrice {
    counted: Option<(u64, u64)>,
    events: f64,
    segments: f64,
}

impl LossPrice {
    /// Takes in the running totals at the end of an interval and returns the price, `None` before any segment.
    pub(crate) fn update(&mut self, events: u64, segments: u64) -> Option<f64> {
        let (events_before, segments_before) = self.counted.unwrap_or((0, 0));
        let gain = if self.segments == 0.0 { 1.0 } else { GAIN };
        self.events += gain * (events.saturating_sub(events_before) as f64 - self.events);
        self.segments += gain * (segments.saturating_sub(segments_before) as f64 - self.segments);
        self.counted = Some((events, segments));
        self.get()
    }

    /// The price last computed.
    pub(crate) fn get(&self) -> Option<f64> {
        (self.segments > 0.0).then(|| self.events / self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_counts_by_its_segments() {
        let mut price = LossPrice::default();
        assert_eq!(price.update(0, 0), None);
        assert_eq!(price.update(1, 1000), Some(1e-3));
        // a nearly silent interval hardly moves the price
        let quiet = price.update(1, 1004).unwrap();
        assert!((quiet - 1e-3).abs() < 2e-5, "{quiet}");
        for i in 1..40 {
            price.update(1 + 4 * i, 1004 + 1000 * i);
        }
        assert!((price.get().unwrap() - 4e-3).abs() < 1e-4);
    }
}
