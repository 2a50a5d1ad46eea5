// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an emulator tells about its traffic, while it runs and afterwards.

use lowtide_net::{Amount, Class, Ecn, Statistics, Time};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seconds that are remembered: one hour.
const REMEMBERED: usize = 3600;

/// Everything since the start of an emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// From A to B.
    pub forward: Statistics,
    /// From B to A.
    pub reverse: Statistics,
    /// What is in the buffer from A to B now, the packet in service included.
    pub forward_queue: Amount,
    /// What is in the buffer from B to A now, the packet in service included.
    pub reverse_queue: Amount,
    /// Packets above the MTU, from either side. They are dropped before they reach the link.
    pub oversized: u64,
    /// Packets that passed the link and that the kernel at its end did not take, as when a process
    /// has set the device down.
    pub refused: u64,
    /// Processor time of the thread that moves the packets.
    pub cpu: Duration,
}

/// What happened within one second of an emulator's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Which second: 0 is the first one.
    pub number: u64,
    /// From A to B.
    pub forward: Statistics,
    /// From B to A.
    pub reverse: Statistics,
}

/// A packet as it arrived at the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When, since the start of the emulator.
    pub at: Time,
    /// Length of the IP packet in bytes.
    pub bytes: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its class, by its DSCP.
    pub class: Class,
    /// Its flow: [`lowtide_net::ip::Header::flow`].
    pub flow: u64,
}

/// What the emulator's thread shows to the others.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    totals: Totals,
    seconds: VecDeque<Second>,
    arrivals: Vec<Arrived>,
    fault: Option<String>,
}

impl Board {
    pub(crate) fn totals(&self) -> Totals {
        self.lock().totals
    }

    /// The seconds from this number on, as far as they are over and remembered.
    pub(crate) fn seconds_from(&self, number: u64) -> Vec<Second> {
        let contents = self.lock();
        let seconds = &contents.seconds;
        let first = seconds.partition_point(|second| second.number < number);
        seconds.range(first..).copied().collect()
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrived> {
        self.lock().arrivals.clone()
    }

    /// Why the thread ended early, if it did.
    pub(crate) fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    pub(crate) fn set_totals(&self, totals: Totals) {
        self.lock().totals = totals;
    }

    pub(crate) fn push_second(&self, second: Second) {
        let mut contents = self.lock();
        if contents.seconds.len() == REMEMBERED {
            contents.seconds.pop_front();
        }
        contents.seconds.push_back(second);
    }

    pub(crate) fn push_arrival(&self, arrived: Arrived) {
        self.lock().arrivals.push(arrived);
    }

    pub(crate) fn set_fault(&self, fault: String) {
        self.lock().fault = Some(fault);
    }

    /// No write can be left half done, so a panic elsewhere does no harm here.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hour_is_remembered() {
        let board = Board::default();
        for number in 0..REMEMBERED as u64 + 10 {
            board.push_second(Second { number, ..Second::default() });
        }
        let numbers = |from| -> Vec<u64> {
            let seconds = board.seconds_from(from).into_iter();
            seconds.map(|second| second.number).collect()
        };
        assert_eq!(numbers(0).len(), REMEMBERED);
        assert_eq!(numbers(0)[0], 10);
        assert_eq!(numbers(3607), [3607, 3608, 3609]);
        assert_eq!(numbers(3610), [0; 0]);
    }
}
