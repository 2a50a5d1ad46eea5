// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide demo`: what `run` does, shown in four acts of one foreground flow and one bulk transfer ([`acts`]).
//!
//! They run on the real kernel, between two network namespaces (`kernel`), or where that is not possible in the
//! simulator ([`simulated`]); shown while they run ([`live`]) and afterwards as a table and a picture. Every number is
//! measured in that run.

mod acts;
#[cfg(target_os = "linux")]
mod kernel;
mod live;
mod picture;
mod recording;
mod simulated;
mod table;

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};

use crate::{
    cli::{DemoArguments, Place},
    draft,
};
use acts::Act;
use recording::Ended;

/// Runs the four acts; gives 0, or 128 and the number of the signal that interrupted them.
///
/// # Errors
/// One sentence: this machine cannot do it, the pictures cannot be written, or something failed underway.
pub fn demo(arguments: &DemoArguments) -> Result<ExitCode> {
    writable(&arguments.out)?;
    let acts = Act::all(arguments.seconds);
    let place = place(arguments)?;
    let ended = match place {
        #[cfg(target_os = "linux")]
        Place::Kernel => kernel::perform(&acts, &arguments.cc)?,
        #[cfg(not(target_os = "linux"))]
        Place::Kernel => unreachable!("there is an obstacle"),
        Place::Sim => simulated::perform(&acts, &arguments.cc)?,
    };
    let recordings = match ended {
        Ended::Through(recordings) => recordings,
        Ended::Interrupted(status) => return Ok(status),
    };

    let svg = picture::draw(&recordings, place);
    save(&arguments.out.join("demo.svg"), svg.as_bytes())?;
    let mut out = io::stdout().lock();
    write!(out, "\n{}", table::render(&table::rows(&recordings)))?;
    let place = arguments.out.display();
    writeln!(out, "\nPicture: {place}/demo.svg")?;
    Ok(ExitCode::SUCCESS)
}

/// Where to run: where it was asked for, else on the real kernel if that can.
fn place(arguments: &DemoArguments) -> Result<Place> {
    if arguments.on == Some(Place::Sim) {
        return Ok(Place::Sim);
    }
    match obstacle(&arguments.cc)? {
        None => Ok(Place::Kernel),
        Some(obstacle) if arguments.on.is_some() => {
            bail!("the demo does not work on this kernel: {obstacle} (lowtide doctor tells more; --on sim works)")
        }
        Some(obstacle) => {
            let mut out = io::stdout();
            writeln!(
                out,
                "This machine cannot show it on its own kernel: {obstacle}\nThe simulator shows it instead.\n"
            )?;
            Ok(Place::Sim)
        }
    }
}

/// Why the real kernel cannot run it, if it cannot.
#[cfg(target_os = "linux")]
fn obstacle(law: &str) -> Result<Option<String>> {
    kernel::obstacle(law)
}

/// Why the real kernel cannot run it, if it cannot.
#[cfg(not(target_os = "linux"))]
fn obstacle(_law: &str) -> Result<Option<String>> {
    Ok(Some("lowtide run needs Linux.".to_owned()))
}

/// Better to know before two minutes than after.
fn writable(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).and_then(|()| tempfile::tempfile_in(directory)).map(drop).with_context(|| {
        let place = directory.display();
        format!("cannot write the picture to {place}; choose another directory with --out")
    })
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    draft::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
