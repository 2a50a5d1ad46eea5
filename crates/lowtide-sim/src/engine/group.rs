// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers of one group, which share one budget: as under `lowtide run --group` each of them looks at the others.

use super::{
    control::{Control, instant},
    flow::FlowState,
};
use lowtide_deadline::group::turn;
use lowtide_net::Time;

/// The group that a flow is in.
fn name<'a>(flow: &FlowState<'a>) -> Option<&'a str> {
    flow.flow.deadline.as_ref()?.group.as_deref()
}

/// Gives the transfer of a flow its turn, if it has a group.
pub(super) fn take_turn(flows: &mut [FlowState<'_>], own: usize, now: Time) {
    let Some(group) = name(&flows[own]) else { return };
    let (places, controls): (Vec<usize>, Vec<&Control>) = flows
        .iter()
        .enumerate()
        .filter(|(_, flow)| name(flow) == Some(group))
        .filter_map(|(n, flow)| Some((n, flow.control.as_ref()?)))
        .unzip();
    let Some(place) = places.iter().position(|n| *n == own) else { return };
    let members: Vec<_> = controls.iter().map(|control| control.member()).collect();
    let turn = turn(&members, place, instant(now));
    let before = controls.iter().filter_map(|control| control.weight_before(controls[place])).reduce(f64::max);
    if let Some(control) = &mut flows[own].control {
        control.take_turn(turn, before);
    }
}
