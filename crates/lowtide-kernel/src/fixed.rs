// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixed-point numbers of the BPF programs.

use crate::{Pressure, bpf_skel::types};

pub(crate) const Q16: f64 = 65_536.0;
pub(crate) const Q32: f64 = 4_294_967_296.0;

pub(crate) fn pressure_value(pressure: &Pressure) -> types::lt_pressure {
    types::lt_pressure {
        surplus_q16: (pressure.surplus.max(0.0) * Q16) as u64,
        hazard_q16: (pressure.hazard.max(0.0) * Q16) as u64,
        kept_q16: (pressure.kept.clamp(0.0, 1.0) * Q16) as u64,
        phantom_q32: (pressure.phantom.clamp(0.0, 1.0) * (Q32 - 1.0)) as u64,
        weight_q16: pressure.weight.map_or(0, |(weight, _)| ((weight.max(0.0) * Q16) as u64).max(1)),
        ratio_q16: pressure.weight.map_or(Q16 as u64, |(_, ratio)| (ratio.max(0.0) * Q16) as u64),
        increase_q16: (pressure.increase.max(0.0) * Q16) as u64,
    }
}
