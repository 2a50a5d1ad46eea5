// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide demo`: what `run` does, shown on an emulated link with Lowtide's own traffic programs.
//!
//! Four acts of one foreground flow and one bulk transfer ([`acts`]), played between two network
//! namespaces ([`stage`]), shown while they run ([`live`]) and afterwards as a table and a picture.
//! Every number is measured in that run.

mod acts;
mod child;
mod interrupt;
mod live;
mod picture;
mod png;
mod recording;
mod sink;
mod stage;
mod table;

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use lowtide_kernel::{Law, Need, diagnose};

use crate::cli::DemoArguments;
use acts::Act;
use interrupt::Interrupt;
use live::Live;
use stage::{Played, Stage};

/// Capacity of the link, counted in IP bytes.
const LINK_MBPS: u64 = 20;
/// Round-trip time of the empty link.
const RTT_MS: u64 = 40;

/// Plays the four acts; gives 0, or 128 and the number of the signal that interrupted them.
///
/// # Errors
/// One sentence: this machine cannot do it, the pictures cannot be written, or something failed
/// underway. Processes and namespaces are gone then, too.
pub fn demo(arguments: &DemoArguments) -> Result<ExitCode> {
    let law = Law::parse(&arguments.cc)?;
    let needs: &[Need] = match law.is_native() {
        true => &[Need::Run, Need::OwnLaws, Need::Emulate],
        false => &[Need::Run, Need::Emulate],
    };
    if let Some(sentence) = diagnose().verdict(needs) {
        bail!("the demo does not work here: {sentence} (lowtide doctor tells more)");
    }
    writable(&arguments.out)?;
    // before any thread starts, so that all of them leave the signals to us
    let interrupt = Interrupt::block()?;
    let mut stage = Stage::set(&interrupt)?;
    let mut live = Live::new();
    live.say(&format!(
        "An emulated link: {LINK_MBPS} Mbit/s, {RTT_MS} ms round trip, buffer of one bandwidth-delay product.\n\
         Four acts of {} s. The foreground sends all it can, as a program does today (CUBIC).",
        arguments.seconds
    ))?;

    let mut recordings = Vec::new();
    for act in Act::all(arguments.seconds) {
        match stage.play(&act, &arguments.cc, &mut live)? {
            Played::Through(recording) => recordings.push(recording),
            Played::Interrupted(signal) => {
                stage.strike()?;
                eprintln!("lowtide: interrupted; processes ended and namespaces removed");
                return Ok(ExitCode::from(128 + signal as u8));
            }
        }
    }
    stage.strike()?;

    let svg = picture::draw(&recordings);
    save(&arguments.out.join("demo.svg"), svg.as_bytes())?;
    save(&arguments.out.join("demo.png"), &png::render(&svg)?)?;
    let mut out = io::stdout().lock();
    write!(out, "\n{}", table::render(&table::rows(&recordings)))?;
    let place = arguments.out.display();
    writeln!(out, "\nPictures: {place}/demo.svg and {place}/demo.png")?;
    Ok(ExitCode::SUCCESS)
}

/// Better to know before two minutes than after.
fn writable(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).and_then(|()| tempfile::tempfile_in(directory)).map(drop).with_context(|| {
        let place = directory.display();
        format!("cannot write the pictures to {place}; choose another directory with --out")
    })
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
