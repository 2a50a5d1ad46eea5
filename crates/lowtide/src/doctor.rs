// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide doctor`.

use std::process::ExitCode;

use lowtide_kernel::{Need, diagnose};

/// Prints the diagnosis; 0 if `run` with the default law works, else 1.
pub fn doctor() -> ExitCode {
    let diagnosis = diagnose();
    for feature in &diagnosis.features {
        match &feature.state {
            Ok(found) => println!("ok       {}: {found}", feature.name),
            Err(missing) => {
                println!("missing  {}: {}", feature.name, missing.why);
                println!("         consequence: {}", missing.consequence);
                println!("         mend: {}", missing.mend);
            }
        }
    }
    match diagnosis.verdict(&[Need::Run, Need::OwnLaws]) {
        None => {
            println!("lowtide run works here.");
            ExitCode::SUCCESS
        }
        Some(_) => ExitCode::FAILURE,
    }
}
