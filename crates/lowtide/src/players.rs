// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who runs the lab's experiments elsewhere than in the simulator.

use anyhow::{Result, bail};
use lowtide_lab::{Place, player::Player};

/// The program that this process runs, whatever has been put in its place since: who executes this executes the same.
#[cfg(target_os = "linux")]
pub const OURSELVES: &str = "/proc/self/exe";

/// Who runs experiments there.
///
/// # Errors
/// Nobody does, in a sentence.
pub fn player(place: Place) -> Result<Box<dyn Player>> {
    match place {
        Place::Sim => bail!("the simulator needs nobody"),
        #[cfg(target_os = "linux")]
        Place::Kernel => Ok(Box::new(lowtide_testbed::KernelPlayer::new(OURSELVES.as_ref())?)),
        #[cfg(target_os = "linux")]
        Place::Guest => {
            Ok(Box::new(lowtide_testbed::GuestPlayer::new(&lowtide_testbed::image_directory()?, OURSELVES.as_ref())?))
        }
        #[cfg(not(target_os = "linux"))]
        Place::Kernel => bail!("experiments run on the kernel of Linux only; leave out --on, or say --on sim"),
        #[cfg(not(target_os = "linux"))]
        Place::Guest => {
            bail!("guests are given this machine's programs, which have to be Linux's; leave out --on, or say --on sim")
        }
    }
}
