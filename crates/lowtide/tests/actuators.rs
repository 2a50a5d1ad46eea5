// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the weight acts on: the smaller it is, the smaller is the transfer's share beside a CUBIC flow.

mod support;

use support::{LINK, Lab, kernel_is_usable, median};

/// The median part of the link that a transfer of this weight takes beside a CUBIC flow.
fn share(options: &[&str], weight: &str) -> f64 {
    const SECONDS: u32 = 30;
    let options = [options, &["--w-min", weight, "--w-max", weight]].concat();
    let measure = || {
        let lab = Lab::new();
        let arguments = ["-t", &(SECONDS - 2).to_string()];
        let patience = std::time::Duration::from_secs(u64::from(SECONDS) + 15);
        lab.beside(SECONDS, || lab.bulk(&options, &arguments, patience)).1.rate() / LINK
    };
    median(measure, |share| *share)
}

#[test]
fn the_share_falls_with_the_weight() {
    for (law, actuator) in [("cdg", "beta"), ("cdg", "phantom")] {
        if !kernel_is_usable() {
            return;
        }
        let shares = ["1", "0.05"].map(|weight| share(&["--cc", law, "--actuator", actuator], weight));
        println!("{law} by {actuator}: {:.3} of the link at w = 1, {:.3} at 0.05", shares[0], shares[1]);
        assert!(shares[1] < 0.7 * shares[0], "{law} by {actuator}: {shares:?}");
    }
}
