// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--group`: its transfers share what they know of each path, and are one flow there. A transfer that begins asks
//! another one for the descriptor of that state. Each that has it keeps it, and the kernel frees it with the last one,
//! however that ends.

use lowtide_kernel::Flows;

use super::plan::Plan;
use crate::operate::{
    client::{everybody, share},
    directory::{Directory, Entry},
    protocol::Share,
};

/// What the transfers of a group have to have in common; `None`: it has no group, or a law whose connections do not
/// share a flow.
pub(super) fn common(plan: &Plan) -> Option<Share> {
    let group = plan.limits.group.clone()?;
    let (law, build) = (plan.setup.law.to_string(), Flows::BUILD.to_owned());
    (plan.setup.direction.has_up() && plan.setup.law.shares_a_flow()).then_some(Share { group, law, build })
}

/// Takes the state of the group, if there is one already. The next of the group begins when the entry is dropped: by
/// then this one has to answer on its control socket.
pub(super) fn enter(plan: &mut Plan) -> Option<Entry> {
    let group = plan.limits.group.as_ref()?;
    let Some(own) = common(plan) else {
        eprintln!(
            "lowtide: only what is sent with --cc tide shares a state per path; this transfer has the schedule in common \
             with the group {group}"
        );
        return None;
    };
    let (entry, answers) = match Directory::usual().and_then(|directory| {
        let entry = directory.enter(&own.group)?;
        let (all, _silent) = everybody(&directory)?;
        let members = all.iter().filter(|it| it.budget.as_ref() == Some(&own.group));
        Ok((entry, members.map(|it| (it.name.clone(), share(&directory, &it.name, &own))).collect::<Vec<_>>()))
    }) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("lowtide: {error:#}; this transfer has a state per path of its own");
            return None;
        }
    };
    plan.setup.flows = answers.iter().find_map(|(_, flows)| flows.as_ref().ok().cloned());
    for (name, error) in answers.iter().filter_map(|(name, flows)| Some((name, flows.as_ref().err()?))) {
        eprintln!("lowtide: {name} of the group {group} does not share its state per path: {error:#}");
    }
    Some(entry)
}
