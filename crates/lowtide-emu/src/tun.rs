// SPDX-License-Identifier: MIT OR Apache-2.0
//! TUN devices: the kernel's IP packets as reads and writes of a file.

use crate::error::Doing;
use crate::{Error, Namespace};
use nix::errno::Errno;
use nix::unistd;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TUN device without offloads.
///
/// Without them the kernel itself cuts GSO packets (up to 64 KiB) to the MTU and computes their
/// checksums before it hands them over. So each read is one packet as it would be on a wire.
pub(crate) struct Tun(File);

impl Tun {
    /// Makes the device in a namespace. It vanishes when this is dropped.
    pub(crate) fn create(namespace: &Namespace, device: &str) -> Result<Self, Error> {
        namespace
            .run(|| Self::create_here(device))?
            .doing(|| format!("make a TUN device in the network namespace {}, from /dev/net/tun", namespace.name()))
    }

    fn create_here(device: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all-zero bytes are a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the kernel reads and writes one ifreq, which is ours.
        Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        let no_offloads: libc::c_ulong = 0;
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, no_offloads) })?;
        Ok(Self(file))
    }

    /// Reads the next packet that the kernel sent, into the front of `buffer`; `None` if there is
    /// none now.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match unistd::read(&self.0, buffer) {
            Ok(bytes) => Ok(Some(&buffer[..bytes])),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Lets the kernel receive a packet.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        unistd::write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
