// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client side of the control socket.

use std::{thread, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use lowtide_kernel::Flows;

use super::{
    directory::Directory,
    frames::Frames,
    protocol::{Command, LONGEST_REPLY, Reply, Request, Share, Status},
};

/// A transfer tells its status at once.
const PATIENCE: Duration = Duration::from_secs(7);
/// Longer than a transfer itself may take for a request.
const ORDER_PATIENCE: Duration = Duration::from_secs(25);

/// Sends a request to the transfer of this name; how it is then.
///
/// # Errors
/// One sentence: there is no such transfer, it does not answer, or it refuses.
pub fn ask(directory: &Directory, name: &str, request: &Request) -> Result<Status> {
    let patience = if request.command == Command::Status { PATIENCE } else { ORDER_PATIENCE };
    let mut frames = Frames::new(directory.connect(name)?, LONGEST_REPLY, patience);
    let talk = || -> Result<Reply> {
        frames.write(request)?;
        let frame = frames.read()?.ok_or_else(|| anyhow!("it has just ended"))?;
        Reply::parse(&frame)
    };
    let reply = { talk }().with_context(|| format!("the transfer {name}"))?;
    match reply {
        Reply { ok: true, status: Some(status), .. } => Ok(status),
        Reply { error, .. } => Err(anyhow!("{name}: {}", error.as_deref().unwrap_or("it refuses, and says no reason"))),
    }
}

/// The state per path of the transfer of this name, for one that has this in common with it.
///
/// # Errors
/// One sentence: there is no such transfer, it does not answer, or it differs.
pub fn share(directory: &Directory, name: &str, share: &Share) -> Result<Flows> {
    let mut frames = Frames::new(directory.connect(name)?, LONGEST_REPLY, PATIENCE);
    frames.write(&Request { share: Some(share.clone()), ..Request::new(Command::Share) })?;
    let (frame, descriptor) = frames.read_descriptor()?;
    let reply = Reply::parse(&frame.ok_or_else(|| anyhow!("it has just ended"))?)?;
    match (reply.error, descriptor) {
        (None, Some(flows)) => Ok(Flows::from(flows)),
        (error, _) => bail!("{}", error.as_deref().unwrap_or("it refuses, and says no reason")),
    }
}

/// All transfers that answer, by name, and for the others why not.
///
/// # Errors
/// The directory of control sockets cannot be read.
pub fn everybody(directory: &Directory) -> Result<(Vec<Status>, Vec<anyhow::Error>)> {
    let names = directory.names()?;
    let answers: Vec<Result<Status>> = thread::scope(|scope| {
        let ask = |name| move || ask(directory, name, &Request::new(Command::Status));
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(ask(name))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let (mut all, mut silent) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(status) => all.push(status),
            Err(error) => silent.push(error),
        }
    }
    Ok((all, silent))
}
