// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! A Debian kernel in virtual time: booted under QEMU's software emulation with a clock that counts instructions, for
//! one command.
//!
//! What the host does meanwhile, and how busy it is, does not change what happens within. It needs `qemu-system-x86_64`
//! and an [`Image`], which `scripts/guest-image.sh` makes, or `scripts/debian-image.sh` with a whole Debian whose first
//! process is systemd; no root, no KVM, no network.
//!
//! ```no_run
//! use lowtide_guest::{Guest, Image, Job, Program};
//!
//! let guest = Guest::new(Image::find("target/lab/guest".as_ref())?, &[Program::of_the_system("tc")?])?;
//! let outcome = guest.run(&Job::new("tc -V > result"))?;
//! println!("{} after {} s of the guest's time", String::from_utf8_lossy(&outcome.result), outcome.seconds);
//! # Ok::<(), lowtide_guest::Error>(())
//! ```

mod archive;
mod error;
mod guest;
mod image;
mod software;
pub mod testing;

pub use error::Error;
pub use guest::{Guest, Job, Outcome};
pub use image::Image;
pub use software::Program;
