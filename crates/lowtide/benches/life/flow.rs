// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow of the kernel's CUBIC from A to B. It counts what arrives, so that its rate can be had for just the time in
//! which a program ran; a tool that reports at its own end cannot do that.

use super::Failure;
use lowtide_emu::Emulator;
use nix::sys::socket::{setsockopt, sockopt};
use std::{
    io::{self, Read},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

pub(crate) struct Flow {
    received: Arc<AtomicU64>,
    ends: [TcpStream; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Begins to send so many bytes; `u64::MAX` never end.
    pub(crate) fn start(link: &Emulator, bytes: u64) -> Result<Flow, Failure> {
        let listener = link.b().run(|| TcpListener::bind((link.b4(), 0)))??;
        let address = listener.local_addr()?;
        let mut sender = link.a().run(|| TcpStream::connect(address))??;
        setsockopt(&sender, sockopt::TcpCongestion, &"cubic".into())?;
        let (mut receiver, _) = listener.accept()?;
        let received = Arc::new(AtomicU64::new(0));
        let ends = [sender.try_clone()?, receiver.try_clone()?];
        let counter = received.clone();
        let threads = vec![
            thread::spawn(move || {
                // fails when this flow is dropped
                let _ = io::copy(&mut io::repeat(0x5a).take(bytes), &mut sender);
            }),
            thread::spawn(move || {
                let mut block = vec![0; 1 << 16];
                while let Ok(read @ 1..) = receiver.read(&mut block) {
                    counter.fetch_add(read as u64, Ordering::Relaxed);
                }
            }),
        ];
        Ok(Flow { received, ends, threads })
    }

    /// Bytes that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // what is still in the send buffer is not sent any more: a reset instead of an orderly end
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        let _ = setsockopt(&self.ends[0], sockopt::Linger, &at_once);
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
