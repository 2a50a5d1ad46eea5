// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo on the real kernel: real programs on an emulated link between two network namespaces.

mod child;
mod sink;
mod stage;

use std::process::ExitCode;

use anyhow::Result;
use lowtide_kernel::{KernelLaw, Need, diagnose};

use super::{acts::Act, live::Live, recording::Ended};
use crate::interruption::Interruption;
use stage::Stage;

/// Why it cannot run here, if it cannot.
///
/// # Errors
/// There is no such law.
pub(super) fn obstacle(law: &str) -> Result<Option<String>> {
    let needs: &[Need] = match KernelLaw::parse(law)?.is_ours() {
        true => &[Need::Run, Need::OwnLaws, Need::Emulate],
        false => &[Need::Run, Need::Emulate],
    };
    Ok(diagnose().verdict(needs))
}

/// Plays the acts. Interrupted, it gives 128 and the number of the signal; processes and namespaces are gone then, too.
pub(super) fn perform(acts: &[Act], law: &str) -> Result<Ended> {
    // before any thread starts, so that all of them leave the signals to us
    let interrupt = Interruption::block()?;
    let mut stage = Stage::set(&interrupt)?;
    let mut live = Live::new();
    live.introduce("An emulated link", acts)?;
    let mut recordings = Vec::new();
    for act in acts {
        match stage.perform(act, law, &mut live)? {
            stage::Ended::Through(recording) => recordings.push(recording),
            stage::Ended::Interrupted(signal) => {
                stage.strike()?;
                eprintln!("lowtide: interrupted; processes ended and namespaces removed");
                return Ok(Ended::Interrupted(ExitCode::from(128 + signal as u8)));
            }
        }
    }
    stage.strike()?;
    Ok(Ended::Through(recordings))
}
