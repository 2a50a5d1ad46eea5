// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide doctor`.

use std::{
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

use anyhow::Result;
use lowtide_kernel::{Diagnosis, Need, diagnose};

/// Prints the diagnosis; 0 if `run` with the default law works, else 1.
///
/// # Errors
/// It cannot be printed.
pub fn doctor() -> Result<ExitCode> {
    let diagnosis = diagnose();
    let works = diagnosis.verdict(&[Need::Run, Need::OwnLaws]).is_none();
    match print(&diagnosis, works) {
        // a reader that has seen enough does not change the verdict
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(diagnosis: &Diagnosis, works: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for feature in &diagnosis.features {
        match &feature.state {
            Ok(found) => writeln!(out, "ok       {}: {found}", feature.name)?,
            Err(missing) => {
                writeln!(out, "missing  {}: {}", feature.name, missing.why)?;
                writeln!(out, "         consequence: {}", missing.consequence)?;
                writeln!(out, "         fix: {}", missing.fix)?;
            }
        }
    }
    if works { writeln!(out, "lowtide run works here.") } else { Ok(()) }
}
