// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CDG and phantom signals show of themselves in a trace, and that every law shows as many values as have names.

use super::{Cdg, Phantom, Q16, State, WINDOW};
use crate::{
    Ported,
    values::{Shown, values},
};
use lowtide_cc::{Flow, Law};

unsafe extern "C" {
    fn native_cdg_inspect(state: *const State, window: u32, hazard_q16: u64, values: *mut i64) -> u32;
    fn native_phantom_inspect(state: *const State, chance_q32: u64, now_ns: u64, values: *mut i64) -> u32;
}

// SAFETY of both calls: as in the module above, with room for as many values as a law has at most.

impl Cdg {
    /// By name, with a hazard of 1.
    fn shown(&self) -> Vec<(&'static str, Shown)> {
        let mut written = [0; 8];
        let count = unsafe { native_cdg_inspect(&*self.0, WINDOW, Q16, written.as_mut_ptr()) };
        named("cdg", true, &written[..count as usize])
    }
}

fn named(law: &str, ours: bool, written: &[i64]) -> Vec<(&'static str, Shown)> {
    let values = values(law, ours);
    assert_eq!(values.len(), written.len(), "{law}");
    values.iter().zip(written).map(|(value, written)| (value.name, value.show(*written))).collect()
}

#[test]
fn cdg_shows_its_gradients() {
    let mut cdg = Cdg::new();
    assert!(cdg.shown().contains(&("base_us", Shown::Nothing)));
    for round in 0..=8 {
        cdg.round(40_000 + round * 80, 50_000 - round * 160);
    }
    let shown = cdg.shown();
    for expected in [
        ("gradient_min_us", Shown::Number(80.0)),
        ("gradient_max_us", Shown::Number(-160.0)),
        ("base_us", Shown::Number(40_000.0)),
        ("shadow", Shown::Number(10.0)),
        ("queue", Shown::Word("full")),
    ] {
        assert!(shown.contains(&expected), "{expected:?}: {shown:?}");
    }
    assert!(matches!(shown[2], ("backoff_probability", Shown::Number(p)) if (p - 0.632).abs() < 0.001), "{shown:?}");
}

#[test]
fn phantom_signals_show_what_they_go_by() {
    let mut phantom = Phantom::starting_at(1_000_000_000);
    let shown = |phantom: &Phantom| {
        let mut written = [0; 8];
        let count = unsafe { native_phantom_inspect(&*phantom.0, 1 << 31, 3_500_000_000, written.as_mut_ptr()) };
        named("cubic", false, &written[..count as usize])
    };
    assert_eq!(shown(&phantom)[1..], [("loss_interval_us", Shown::Nothing), ("since_loss_us", Shown::Nothing)]);
    phantom.real_signal(3_000_000_000);
    assert_eq!(
        shown(&phantom),
        [
            ("signal_chance", Shown::Number(0.5)),
            ("loss_interval_us", Shown::Number(2e6)),
            ("since_loss_us", Shown::Number(5e5)),
        ]
    );
}

#[test]
fn every_law_shows_as_many_values_as_have_names() {
    for law in Ported::names() {
        let ported = Ported::new(&law.parse::<Law>().unwrap()).unwrap();
        let port = ported.port(&Flow { mss: 1000, initial_window: 10, seed: 1 });
        named(law, true, &port.values());
    }
}
