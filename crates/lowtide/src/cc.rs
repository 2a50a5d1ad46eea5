// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide cc`: Lowtide's control laws for the whole machine.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use lowtide_kernel::{KernelLaw, MachineLaw, Need, Pinned, diagnose};

use crate::{cli::CcCommand, interruption::Interruption};

/// How often we look whether it is over.
const LOOK: Duration = Duration::from_secs(3600);

/// Does what is asked for.
///
/// # Errors
/// In a sentence.
pub fn cc(command: &CcCommand) -> Result<ExitCode> {
    match command {
        CcCommand::List => list(),
        CcCommand::Show { laws } => show(laws),
        CcCommand::Load { laws, weight, pin } => load(laws, *weight, *pin),
        CcCommand::Unload { laws, force } => unload(laws, *force),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<()> {
    let pinned = Pinned::all()?;
    let mut out = io::stdout().lock();
    for name in KernelLaw::OWN {
        let kernel_name = KernelLaw::registered(name);
        match pinned.iter().find(|law| law.name == kernel_name) {
            Some(law) => writeln!(out, "{name:10} loaded as {kernel_name}, {}", sockets(law.about()?.sockets))?,
            None => writeln!(out, "{name:10} not loaded")?,
        }
    }
    Ok(())
}

fn show(laws: &[String]) -> Result<()> {
    let laws =
        if laws.is_empty() { Pinned::all()? } else { laws.iter().map(|law| find(law)).collect::<Result<_>>()? };
    let mut out = io::stdout().lock();
    if laws.is_empty() {
        writeln!(out, "none of Lowtide's laws is loaded; lowtide cc load LAW --pin loads one")?;
    }
    for law in laws {
        let about = law.about()?;
        writeln!(out, "{}: {}, {}", law.name, about.law, sockets(about.sockets))?;
        writeln!(out, "    {} delay back-offs, {} skipped callbacks repaired", about.reductions, about.missed)?;
    }
    Ok(())
}

fn load(laws: &[String], weight: Option<f64>, pin: bool) -> Result<()> {
    let interruption = Interruption::block()?;
    let laws = laws.iter().map(|text| KernelLaw::parse_published(text)).collect::<Result<Vec<_>, _>>()?;
    let loaded = laws.iter().map(|law| MachineLaw::load(law, weight)).collect::<Result<Vec<_>, _>>();
    let loaded = loaded.map_err(|error| match diagnose().verdict(&[Need::OwnLaws]) {
        Some(sentence) => anyhow!("{error}: {sentence} (lowtide doctor has the details)"),
        None => anyhow!(error),
    })?;
    let names: Vec<String> = loaded.iter().map(|law| law.name().to_owned()).collect();
    // before anything is printed, as the output may be closed
    let here = if pin {
        loaded.into_iter().try_for_each(MachineLaw::pin)?;
        Vec::new()
    } else {
        loaded
    };
    let mut out = io::stdout().lock();
    for name in &names {
        writeln!(out, "{name} is loaded: iperf3 -C {name} …, setsockopt(TCP_CONGESTION, \"{name}\")")?;
    }
    if here.is_empty() {
        return Ok(());
    }
    writeln!(out, "Ctrl-C unloads it; with --pin it stays loaded when this program ends")?;
    drop(out);
    while !interruption.came_or_unread(LOOK)? {}
    Ok(())
}

fn unload(laws: &[String], force: bool) -> Result<()> {
    // all are looked at before one goes
    let laws = laws.iter().map(|law| find(law)).collect::<Result<Vec<_>>>()?;
    for law in &laws {
        let number = law.about()?.sockets;
        if number > 0 && !force {
            bail!(
                "{} is used by {}; --force unloads it anyway: these sockets keep it until they close, and no new one gets it",
                law.name,
                sockets(number)
            );
        }
    }
    Ok(laws.into_iter().try_for_each(Pinned::unload)?)
}

/// A pinned law by its own or its kernel's name.
fn find(law: &str) -> Result<Pinned> {
    let name = KernelLaw::registered(law);
    let found = Pinned::all()?.into_iter().find(|pinned| pinned.name == name);
    found.ok_or_else(|| anyhow!("{name} is not loaded, or not pinned; lowtide cc list says what is"))
}

fn sockets(number: usize) -> String {
    if number == 1 { "1 socket".to_owned() } else { format!("{number} sockets") }
}
