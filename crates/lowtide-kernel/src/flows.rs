// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the connections of a transfer know of each path: a map in the kernel, which transfers of a group may share.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

/// The state per path of a transfer, or of several. The kernel keeps it as long as one of them lives, or this value.
#[derive(Debug, Clone)]
pub struct Flows(Arc<OwnedFd>);

impl Flows {
    /// Identifies the BPF programs of this build: only programs of the same build can share their state.
    pub const BUILD: &'static str = env!("LOWTIDE_BPF_BUILD");
}

impl From<OwnedFd> for Flows {
    /// The descriptor of a map that [`Transfer::flows`](crate::Transfer::flows) returned, maybe in another process.
    fn from(map: OwnedFd) -> Flows {
        Flows(Arc::new(map))
    }
}

impl AsFd for Flows {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
