// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which control law the transfer's sockets run, and what Lowtide must know about it.

use std::{fs, ops::RangeInclusive};

use crate::{Error, Result};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Laws that pace by a model of the path and do not reduce their window on a congestion signal, or by a
/// measure of their own that a phantom signal does not enter.
const DEAF: [&str; 5] = ["bbr", "bbr2", "bbr3", "dctcp", "prague"];

/// The parameters of CDG for one transfer: those of Linux' `tcp_cdg`, but for `g0_ms` and `floor_ms`
/// (`docs/deviations.md`, 7 and 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CdgParameters {
    /// Gradients averaged: a power of two, 1 to 256. The papers' `window`.
    pub window: u32,
    /// G₀ in ms: the gradient whose hazard is 1/w − 1.
    pub g0_ms: f64,
    /// Queueing delay in ms, over the smallest round trip, that counts as an empty queue and thus as no price; at least 1/16 of the round trip
    /// unless it is 0, with which every gradient counts, as published.
    pub floor_ms: f64,
    /// Part of the window kept at a delay back-off, in 1/1024; √½ in the Linux module.
    pub beta_q10: u32,
    /// Keep a shadow window, which gives back what delay back-offs took when a loss comes. Off in LBE mode.
    pub use_shadow: bool,
    /// After so many back-offs that did not end the queue's growth, ignore further ones; 0 (LBE mode): never.
    pub use_ineff: u32,
    /// Ignore losses that come while the queue is not full. Off in LBE mode.
    pub use_tolerance: bool,
    /// Hybrid slow start: bit 1 the ACK train, bit 2 the delay.
    pub hystart: u32,
}

impl Default for CdgParameters {
    /// Mainline Linux in its LBE mode, without the ACK train: the sockets are paced, which would look like one.
    fn default() -> CdgParameters {
        CdgParameters {
            window: 8,
            g0_ms: 125.0,
            floor_ms: 2.0,
            beta_q10: 724,
            use_shadow: false,
            use_ineff: 0,
            use_tolerance: false,
            hystart: 2,
        }
    }
}

impl CdgParameters {
    /// Values of [`CdgParameters::window`].
    pub const WINDOWS: RangeInclusive<u32> = 1..=256;
}

/// A control law.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Lowtide's own CDG, which takes the weight as its hazard.
    Cdg(CdgParameters),
    /// A law of the kernel by its name, made submissive by phantom congestion signals.
    Kernel(String),
}

impl Law {
    /// Reads `cdg`, or the name of a law registered in this kernel.
    ///
    /// # Errors
    /// [`Error::Law`]: a law that ignores congestion signals, or one that is not registered.
    pub fn parse(text: &str) -> Result<Law> {
        if text == "cdg" {
            return Ok(Law::Cdg(CdgParameters::default()));
        }
        if DEAF.contains(&text) {
            return Err(Error::Law(format!(
                "--cc {text} cannot be governed: it does not reduce its window on a congestion signal, so no weight would have an effect; use cdg, cubic or reno"
            )));
        }
        let available = fs::read_to_string(AVAILABLE).map_err(Error::system("reading the kernel's list of laws"))?;
        // lt_*: the laws of other runs, which end with them
        let usable: Vec<&str> =
            available.split_whitespace().filter(|law| !DEAF.contains(law) && !law.starts_with("lt_")).collect();
        if usable.contains(&text) {
            return Ok(Law::Kernel(text.to_owned()));
        }
        Err(Error::Law(format!(
            "--cc {text} is not registered in this kernel; there are cdg (Lowtide's own) and {} (others: modprobe tcp_NAME)",
            usable.join(", ")
        )))
    }

    /// The law's name as given on the command line.
    pub fn name(&self) -> &str {
        match self {
            Law::Cdg(_) => "cdg",
            Law::Kernel(name) => name,
        }
    }

    /// Whether the law itself knows the weight; the others get phantom signals.
    pub fn is_native(&self) -> bool {
        matches!(self, Law::Cdg(_))
    }

    /// Round trips that a flow takes to follow its weight, for windows of some tens of segments: CDG grows as Reno, by one segment in each;
    /// CUBIC in its Reno-friendly region by 0.53, and other laws of the kernel may be as slow.
    pub fn response_round_trips(&self) -> f64 {
        match self {
            Law::Cdg(_) => 50.0,
            Law::Kernel(name) if name == "reno" => 50.0,
            Law::Kernel(_) => 120.0,
        }
    }

    /// α of rate ∝ price^(−1/α): with it n sockets share one flow's budget (`w·n^(−α)`), and the ceiling at w = 1 is foretold.
    /// CUBIC has 4/3, and Reno's 2 in its Reno-friendly region, which is where `loss` per packet exceeds 0.55·RTT³
    /// (RTT in s): there the CUBIC model in Fig. 3 of the framework (`docs/deviations.md` has its title), with β = 0.7,
    /// meets Reno's window √(1.5/loss). CDG near w = 1 is Reno; what it is below does not matter for the ceiling, which is
    /// only spoken of near w = 1.
    pub fn exponent(&self, loss: Option<f64>, rtt_s: Option<f64>) -> f64 {
        const RENO: f64 = 2.0;
        match self {
            Law::Cdg(_) => RENO,
            Law::Kernel(name) => match name.as_str() {
                "cubic" | "bic" => match (loss, rtt_s) {
                    (Some(loss), Some(rtt)) if loss < 0.55 * rtt * rtt * rtt => 4.0 / 3.0,
                    _ => RENO,
                },
                "vegas" | "nv" => 1.0,
                _ => RENO,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_that_ignore_signals_are_refused() {
        for law in DEAF {
            let error = Law::parse(law).unwrap_err().to_string();
            assert!(error.contains(law) && error.contains("use cdg"), "{error}");
        }
    }

    #[test]
    fn an_unknown_law_names_what_there_is() {
        let error = Law::parse("qubic").unwrap_err().to_string();
        assert!(error.contains("qubic") && error.contains("reno"), "{error}");
    }

    #[test]
    fn cubic_is_reno_where_the_window_is_small() {
        let cubic = Law::Kernel("cubic".into());
        // 20 Mbit/s and 40 ms: about one loss in 5000 packets, against 0.55·0.06³ = 1.2e-4
        assert_eq!(cubic.exponent(Some(2e-4), Some(0.06)), 2.0);
        assert_eq!(cubic.exponent(Some(1e-5), Some(0.06)), 4.0 / 3.0);
        assert_eq!(cubic.exponent(None, None), 2.0);
    }
}
