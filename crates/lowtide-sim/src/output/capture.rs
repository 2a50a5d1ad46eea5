// SPDX-License-Identifier: MIT OR Apache-2.0
//! `packets.pcapng`: what the hosts sent and received, for Wireshark.

use super::{
    OutputError,
    wire::{HEADERS_MAX, Wire},
};
use crate::{observe::PacketEvent, scenario::Scenario};
use pcap_file::{
    DataLink, Endianness, PcapError,
    pcapng::{
        PcapNgBlock, PcapNgWriter,
        blocks::{
            enhanced_packet::EnhancedPacketBlock,
            interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption},
        },
    },
};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// At which hosts packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At those that send data.
    Sender,
    /// At those that receive it.
    Receiver,
    /// At both, as two interfaces.
    Both,
}

impl Side {
    /// The number of the interface that sees a packet.
    fn interface(self, packet: &PacketEvent) -> Option<u32> {
        let at_sender = packet.from_sender == packet.leaving;
        match (self, at_sender) {
            (Self::Sender, true) | (Self::Receiver, false) | (Self::Both, true) => Some(0),
            (Self::Both, false) => Some(1),
            _ => None,
        }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Sender => &["sender"],
            Self::Receiver => &["receiver"],
            Self::Both => &["sender", "receiver"],
        }
    }
}

/// Timestamps are nanoseconds.
const RESOLUTION: u8 = 9;

/// The capture under way.
pub(super) struct Capture {
    path: PathBuf,
    side: Side,
    wire: Wire,
    writer: PcapNgWriter<BufWriter<File>>,
}

impl Capture {
    pub(super) fn create(path: PathBuf, side: Side, scenario: &Scenario) -> Result<Self, OutputError> {
        let file = File::create(&path).map_err(OutputError::at(&path))?;
        // the same bytes on every machine
        let writer = PcapNgWriter::with_endianness(BufWriter::new(file), Endianness::Little);
        let mut writer = writer.map_err(|error| failed(&path, error))?;
        for name in side.names() {
            let options = vec![
                InterfaceDescriptionOption::IfName((*name).into()),
                InterfaceDescriptionOption::IfTsResol(RESOLUTION),
            ];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: HEADERS_MAX, options };
            writer.write_block(&interface.into_block()).map_err(|error| failed(&path, error))?;
        }
        Ok(Self { path, side, wire: Wire::new(&scenario.flows), writer })
    }

    pub(super) fn packet(&mut self, event: &PacketEvent) -> Result<(), OutputError> {
        let Some(interface_id) = self.side.interface(event) else { return Ok(()) };
        let Some(frame) = self.wire.frame(event, interface_id) else { return Ok(()) };
        let packet = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(event.now.as_nanos()),
            original_len: frame.length,
            data: frame.headers.into(),
            options: Vec::new(),
        };
        self.writer.write_block(&packet.into_block()).map_err(|error| failed(&self.path, error))?;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), OutputError> {
        self.writer.into_inner().flush().map_err(OutputError::at(&self.path))
    }
}

fn failed(path: &Path, error: PcapError) -> OutputError {
    let error = match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    };
    OutputError::at(path)(error)
}
