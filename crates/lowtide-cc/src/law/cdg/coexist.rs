// SPDX-License-Identifier: MIT OR Apache-2.0
//! How CDG competes with loss-based flows: the shadow window, and the end of back-offs without effect. A flow that is
//! to be less than best effort has neither.

use super::Variant;
use std::num::NonZeroU32;

/// The window that a loss-based flow would have, segments. A loss leaves at least half of it, so that earlier delay
/// back-offs are not paid for twice. The versions differ in all of its rules.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    variant: Variant,
    window: f64,
}

impl Shadow {
    pub(super) const fn new(variant: Variant, cwnd: f64) -> Self {
        Self { variant, window: cwnd }
    }

    /// Segments; 0 if no loss-based flow is thought to compete.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    /// The window grew from one value to another, in slow start or at the end of a round.
    pub(super) fn on_growth(&mut self, before: f64, after: f64, slow_start: bool) {
        match self.variant {
            Variant::Mainline => self.window += after - before,
            // An empty shadow stays empty in the other two.
            _ if self.window == 0.0 => {}
            Variant::Thesis => self.window = after.max(self.window + 1.0),
            Variant::FreeBsd if slow_start => self.window += after - before,
            Variant::FreeBsd => self.window += 1.0,
        }
    }

    /// The window was not the limit, so a larger shadow window is not justified (thesis, section 3.4.4).
    pub(super) fn on_unused(&mut self, cwnd: f64) {
        if self.variant != Variant::FreeBsd {
            self.window = self.window.min(cwnd);
        }
    }

    /// No loss-based flow competes.
    pub(super) const fn on_uncontested(&mut self) {
        self.window = 0.0;
    }

    /// Delay requires a back-off from a window of `before` segments to one of `after`; they are equal if it is held
    /// back.
    pub(super) fn on_delay(&mut self, before: f64, after: f64, held: bool) {
        match self.variant {
            Variant::Mainline if held => {}
            Variant::Mainline | Variant::Thesis => self.window = self.window.max(before),
            Variant::FreeBsd => self.window = self.window.max(after),
        }
    }

    /// A loss of a full queue. Returns what the window may keep.
    pub(super) fn on_loss(&mut self, cwnd: f64) -> f64 {
        self.window *= 0.5;
        if self.variant == Variant::Mainline {
            self.window = self.window.min(cwnd);
        }
        self.window
    }
}

/// Counts back-offs after which the delay did not fall: loss-based flows fill the queue, and a back-off does not help.
#[derive(Clone, Debug)]
pub(super) struct Ineffectual {
    /// Back-offs that may have no effect; `None`: any number.
    threshold: Option<NonZeroU32>,
    hold: u32,
    count: u32,
}

impl Ineffectual {
    pub(super) const fn new(threshold: Option<NonZeroU32>, hold: u32) -> Self {
        Self { threshold, hold, count: 0 }
    }

    /// Back-offs since the delay last fell.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The delay falls.
    pub(super) const fn reset(&mut self) {
        self.count = 0;
    }

    /// Delay requires a back-off: whether there is one.
    pub(super) const fn allows(&mut self) -> bool {
        let Some(threshold) = self.threshold else { return true };
        let threshold = threshold.get();
        self.count = self.count.saturating_add(1);
        let allowed = self.count <= threshold;
        if !allowed && self.hold > 0 && self.count >= threshold.saturating_add(self.hold) {
            self.count = 0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(ineffectual: &mut Ineffectual, times: usize) -> Vec<bool> {
        (0..times).map(|_| ineffectual.allows()).collect()
    }

    #[test]
    fn holds_five_and_begins_anew() {
        let mut ineffectual = Ineffectual::new(NonZeroU32::new(5), 5);
        let cycle = [[true; 5], [false; 5]].concat();
        assert_eq!(allowed(&mut ineffectual, 20), [cycle.clone(), cycle].concat());
    }

    #[test]
    fn without_hold_only_a_falling_delay_ends_it() {
        let mut ineffectual = Ineffectual::new(NonZeroU32::new(5), 0);
        assert_eq!(allowed(&mut ineffectual, 100), [&[true; 5][..], &[false; 95]].concat());
        ineffectual.reset();
        assert!(ineffectual.allows());
        assert_eq!(allowed(&mut Ineffectual::new(None, 5), 50), [true; 50]);
    }

    fn shadow(variant: Variant, window: f64) -> Shadow {
        Shadow::new(variant, window)
    }

    #[test]
    fn shadows_grow_differently() {
        let grown = |variant, window, slow_start| {
            let mut shadow = shadow(variant, window);
            shadow.on_growth(10.0, 13.0, slow_start);
            shadow.window()
        };
        // Mainline follows the window, even from nothing; FreeBSD does in slow start; one segment else.
        assert_eq!([0.0, 20.0].map(|window| grown(Variant::Mainline, window, false)), [3.0, 23.0]);
        assert_eq!([0.0, 5.0, 20.0].map(|window| grown(Variant::Thesis, window, false)), [0.0, 13.0, 21.0]);
        assert_eq!([0.0, 5.0, 20.0].map(|window| grown(Variant::FreeBsd, window, false)), [0.0, 6.0, 21.0]);
        assert_eq!([0.0, 5.0, 20.0].map(|window| grown(Variant::FreeBsd, window, true)), [0.0, 8.0, 23.0]);
    }

    #[test]
    fn shadows_remember_the_window_differently() {
        let after = |variant, held| {
            let mut shadow = shadow(variant, 1.0);
            shadow.on_delay(10.0, if held { 10.0 } else { 7.0 }, held);
            shadow.window()
        };
        assert_eq!([false, true].map(|held| after(Variant::Mainline, held)), [10.0, 1.0]);
        assert_eq!([false, true].map(|held| after(Variant::Thesis, held)), [10.0, 10.0]);
        assert_eq!([false, true].map(|held| after(Variant::FreeBsd, held)), [7.0, 10.0]);
    }

    #[test]
    fn only_mainline_bounds_the_shadow_by_the_window_at_a_loss() {
        let left = |variant| shadow(variant, 100.0).on_loss(30.0);
        assert_eq!([Variant::Mainline, Variant::Thesis, Variant::FreeBsd].map(left), [30.0, 50.0, 50.0]);
    }

    #[test]
    fn only_linux_bounds_the_shadow_of_a_window_that_is_not_used() {
        let left = |variant| {
            let mut shadow = shadow(variant, 100.0);
            shadow.on_unused(30.0);
            shadow.window()
        };
        assert_eq!([Variant::Mainline, Variant::Thesis, Variant::FreeBsd].map(left), [30.0, 30.0, 100.0]);
    }
}
