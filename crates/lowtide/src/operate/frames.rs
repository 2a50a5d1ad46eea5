// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames on a control socket: a line each, of bounded length, within a bounded time.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
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
            match self.stream.read(&mut bytes) {
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
        let mut text = serde_json::to_vec(frame)?;
        text.push(b'\n');
        let end = Instant::now() + self.patience;
        let mut rest = &text[..];
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(end)?))?;
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
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

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the frame did not come or go in time")
}

#[cfg(test)]
mod tests {
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
    fn a_peer_that_does_not_read_is_left() {
        let (mut frames, peer) = pair(8);
        let long = "a".repeat(1 << 22); // more than a socket holds
        assert_eq!(frames.write(&long).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(peer);
        assert_eq!(frames.write(&"b").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
