// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames on a control socket: a line each, of bounded length, within a bounded time.

use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::{
    cmsg_space,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg},
};
use serde::Serialize;

/// One side of a connection. What came after a frame's end is kept for the next one.
#[derive(Debug)]
pub(super) struct Frames {
    stream: UnixStream,
    pending: Vec<u8>,
    most: usize,
    patience: Duration,
}

impl Frames {
    /// Frames of at most so many bytes; the whole of one has to come or go within `patience`.
    pub(super) fn new(stream: UnixStream, most: usize, patience: Duration) -> Frames {
        Frames { stream, pending: Vec::new(), most, patience }
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next frame, without its end of line; `None` where the peer has ended.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it is too long. [`ErrorKind::TimedOut`]: it took too long.
    /// [`ErrorKind::UnexpectedEof`]: it has no end.
    pub(super) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.read_by(|mut stream, bytes| stream.read(bytes))
    }

    /// The same, with a descriptor that may come with it.
    ///
    /// # Errors
    /// As [`Frames::read`].
    pub(super) fn read_descriptor(&mut self) -> io::Result<(Option<Vec<u8>>, Option<OwnedFd>)> {
        let mut descriptor = None;
        let frame = self.read_by(|stream, bytes| {
            let (read, found) = receive(stream, bytes)?;
            descriptor = found.or(descriptor.take());
            Ok(read)
        })?;
        Ok((frame, descriptor))
    }

    fn read_by(
        &mut self,
        mut read: impl FnMut(&UnixStream, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Option<Vec<u8>>> {
        let end = Instant::now() + self.patience;
        loop {
            if let Some(at) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(at + 1);
                let mut frame = std::mem::replace(&mut self.pending, rest);
                frame.truncate(at);
                return if at > self.most { Err(self.too_long()) } else { Ok(Some(frame)) };
            }
            if self.pending.len() > self.most {
                return Err(self.too_long());
            }
            self.stream.set_read_timeout(Some(left(end)?))?;
            let mut bytes = [0; 4096];
            match read(&self.stream, &mut bytes) {
                Ok(0) if self.pending.is_empty() => return Ok(None),
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the frame has no end of line")),
                Ok(read) => self.pending.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The peer has gone, or does not read.
    pub(super) fn write(&mut self, frame: &impl Serialize) -> io::Result<()> {
        self.write_with(frame, None)
    }

    /// The same, with a descriptor for the peer.
    ///
    /// # Errors
    /// As [`Frames::write`].
    pub(super) fn write_with(
        &mut self,
        frame: &impl Serialize,
        mut descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut text = serde_json::to_vec(frame)?;
        text.push(b'\n');
        let end = Instant::now() + self.patience;
        let mut rest = &text[..];
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(end)?))?;
            let written = match descriptor {
                Some(descriptor) => send(&self.stream, rest, descriptor),
                None => self.stream.write(rest),
            };
            match written {
                Ok(written) => (rest, descriptor) = (&rest[written..], None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn too_long(&self) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, format!("the frame is longer than {} bytes", self.most))
    }
}

/// Sends a descriptor with the first of these bytes.
fn send(stream: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [descriptor.as_raw_fd()];
    let with = [ControlMessage::ScmRights(&descriptors)];
    Ok(sendmsg::<UnixAddr>(stream.as_raw_fd(), &[IoSlice::new(bytes)], &with, MsgFlags::MSG_NOSIGNAL, None)?)
}

fn receive(stream: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = cmsg_space!([libc::c_int; 1]);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let descriptors = message.cmsgs()?.filter_map(|with| match with {
        ControlMessageOwned::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    // SAFETY: the kernel has just made these descriptors, for this call alone.
    let last = descriptors.flatten().map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }).last();
    Ok((message.bytes, last))
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the frame did not come or go in time")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(200);

    fn pair(most: usize) -> (Frames, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Frames::new(ours, most, PATIENCE), theirs)
    }

    #[test]
    fn frames_come_one_by_one_however_they_were_sent() {
        let (mut frames, mut peer) = pair(8);
        peer.write_all(b"one\n\ntwo").unwrap();
        assert_eq!(frames.read().unwrap().unwrap(), b"one");
        assert_eq!(frames.read().unwrap().unwrap(), b"");
        peer.write_all(b"more\n12345678\n").unwrap();
        assert_eq!(frames.read().unwrap().unwrap(), b"twomore");
        assert_eq!(frames.read().unwrap().unwrap(), b"12345678", "as long as it may be");
        drop(peer);
        assert_eq!(frames.read().unwrap(), None);
    }

    #[test]
    fn one_without_end_is_refused() {
        for (sent, kind) in [
            (&b"123456789\n"[..], ErrorKind::InvalidData),
            (b"123456789", ErrorKind::InvalidData),
            (b"1234", ErrorKind::TimedOut),
            (b"", ErrorKind::TimedOut),
        ] {
            let (mut frames, mut peer) = pair(8);
            peer.write_all(sent).unwrap();
            assert_eq!(frames.read().unwrap_err().kind(), kind, "{sent:?}");
        }
        let (mut frames, mut peer) = pair(8);
        peer.write_all(b"1234").unwrap();
        drop(peer);
        assert_eq!(frames.read().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_descriptor_comes_with_its_frame() {
        let (mut frames, peer) = pair(64);
        let mut theirs = Frames::new(peer, 64, PATIENCE);
        let (mut told, ours) = std::io::pipe().unwrap();
        theirs.write(&"none").unwrap();
        assert!(matches!(frames.read_descriptor().unwrap(), (Some(frame), None) if frame == b"\"none\""));
        theirs.write_with(&"one", Some(ours.as_fd())).unwrap();
        drop(ours);
        let (frame, descriptor) = frames.read_descriptor().unwrap();
        assert_eq!(frame.unwrap(), b"\"one\"");
        std::fs::File::from(descriptor.unwrap()).write_all(b"over it").unwrap();
        let mut text = String::new();
        told.read_to_string(&mut text).unwrap(); // to its end: no other copy is left
        assert_eq!(text, "over it");
        theirs.write_with(&"two", Some(told.as_fd())).unwrap();
        assert_eq!(frames.read().unwrap().unwrap(), b"\"two\"", "one that was not asked for is dropped");
    }

    #[test]
    fn a_peer_that_does_not_read_is_left() {
        let (mut frames, peer) = pair(8);
        let long = "a".repeat(1 << 22); // more than a socket holds
        assert_eq!(frames.write(&long).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(peer);
        assert_eq!(frames.write(&"b").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
