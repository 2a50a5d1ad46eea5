// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbeds of the lab: what runs its experiments with the TCP of a kernel.

use anyhow::{Result, bail};
use lowtide_lab::{Place, testbed::Testbed};

/// The program that this process runs, whatever has been put in its place since: who executes this executes the same.
#[cfg(target_os = "linux")]
pub const OURSELVES: &str = "/proc/self/exe";

/// The testbed of this place.
///
/// # Errors
/// There is none, in a sentence.
pub fn testbed(place: Place) -> Result<Box<dyn Testbed>> {
    match place {
        Place::Sim => bail!("the simulator is no testbed"),
        #[cfg(target_os = "linux")]
        Place::Kernel => Ok(Box::new(lowtide_testbed::KernelTestbed::new(OURSELVES.as_ref())?)),
        #[cfg(target_os = "linux")]
        Place::Guest => {
            Ok(Box::new(lowtide_testbed::GuestTestbed::new(&lowtide_testbed::image_directory()?, OURSELVES.as_ref())?))
        }
        #[cfg(not(target_os = "linux"))]
        Place::Kernel => bail!("experiments run on the kernel of Linux only; leave out --on, or say --on sim"),
        #[cfg(not(target_os = "linux"))]
        Place::Guest => {
            bail!("guests are given this machine's programs, which have to be Linux's; leave out --on, or say --on sim")
        }
    }
}
