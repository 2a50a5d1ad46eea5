// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixed-point numbers of the BPF programs.

pub(crate) const Q16: f64 = 65_536.0;
pub(crate) const Q32: f64 = 4_294_967_296.0;

pub(crate) fn surplus_q16(surplus: f64) -> u64 {
    (surplus.max(0.0) * Q16) as u64
}

pub(crate) fn phantom_q32(phantom: f64) -> u64 {
    (phantom.clamp(0.0, 1.0) * (Q32 - 1.0)) as u64
}

pub(crate) fn increase_q16(increase: f64) -> u64 {
    (increase.max(0.0) * Q16) as u64
}
