// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control law of a connection.

use crate::scenario::Tcp;
use lowtide_cc::{Actuator, CongestionControl, Flow, Law};
use lowtide_port::Ported;

/// The law of a connection with these settings, which takes a weight by this actuator, if by any. `seed` is for the
/// chances that it takes.
///
/// # Panics
/// The law does not take this actuator; [`Law::build_weighted`](lowtide_cc::Law::build_weighted) says so.
pub fn law(settings: &Tcp, actuator: Option<&Actuator>, seed: u64) -> Box<dyn CongestionControl> {
    let flow = Flow { mss: settings.mss, initial_window: settings.initial_window, seed };
    let make = |law: &Law| match settings.port {
        true => Ported::new(law).expect("the scenario was checked").build(&flow),
        false => law.build(&flow),
    };
    match actuator {
        Some(actuator) => settings.law.steered(&flow, actuator, &make).expect("the scenario was checked"),
        None => make(&settings.law),
    }
}
