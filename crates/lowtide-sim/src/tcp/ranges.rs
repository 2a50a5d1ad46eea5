// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of sequence numbers.

use std::collections::VecDeque;

/// Half-open ranges `[start, end)` that neither overlap nor touch, in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// The range that holds `seq`.
    pub(super) fn around(&self, seq: u64) -> Option<(u64, u64)> {
        let range = *self.ranges.get(self.first_ending_from(seq + 1))?;
        (range.0 <= seq).then_some(range)
    }

    /// Adds `[start, end)`, calls `new` for every part of it that was not there yet, in ascending order, and returns
    /// the range that now holds it.
    pub(super) fn insert(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) -> (u64, u64) {
        let at = self.first_ending_from(start);
        let mut merged = (start, end);
        let (mut covered, mut after) = (start, at);
        while let Some(&(low, high)) = self.ranges.get(after).filter(|range| range.0 <= end) {
            if covered < low {
                new(covered, low);
            }
            covered = covered.max(high);
            merged = (merged.0.min(low), merged.1.max(high));
            after += 1;
        }
        if covered < end {
            new(covered, end);
        }
        if after == at {
            self.ranges.insert(at, merged);
        } else {
            self.ranges[at] = merged;
            if after > at + 1 {
                self.ranges.drain(at + 1..after);
            }
        }
        merged
    }

    /// Forgets everything below `seq`.
    pub(super) fn remove_below(&mut self, seq: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.1 > seq {
                first.0 = first.0.max(seq);
                return;
            }
            self.ranges.pop_front();
        }
    }

    /// The index of the first range that ends at `seq` or above.
    fn first_ending_from(&self, seq: u64) -> usize {
        match self.ranges.back() {
            Some(last) if last.1 >= seq => self.ranges.partition_point(|range| range.1 < seq),
            _ => self.ranges.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_the_set_of_what_was_inserted(parts in prop::collection::vec((0..60u64, 1..9u64), 1..40), below in 0..70u64) {
            let mut ranges = Ranges::default();
            let mut set = [false; 70];
            for (start, len) in parts {
                let mut fresh = Vec::new();
                let merged = ranges.insert(start, start + len, |low, high| fresh.extend(low..high));
                let expected: Vec<u64> = (start..start + len).filter(|&seq| !set[seq as usize]).collect();
                prop_assert_eq!(fresh, expected);
                set[start as usize..(start + len) as usize].fill(true);
                prop_assert!(set[merged.0 as usize..merged.1 as usize].iter().all(|held| *held));
                prop_assert!(merged.0 == 0 || !set[merged.0 as usize - 1]);
                prop_assert!(!set[merged.1 as usize]);
            }
            ranges.remove_below(below);
            set[..below as usize].fill(false);
            for seq in 0..69 {
                prop_assert_eq!(ranges.around(seq).is_some(), set[seq as usize]);
            }
            prop_assert_eq!(ranges.first().map(|range| range.0), set.iter().position(|held| *held).map(|seq| seq as u64));
        }
    }
}
