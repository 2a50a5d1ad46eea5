// SPDX-License-Identifier: MIT OR Apache-2.0
//! The skeleton of the BPF object, as the build makes it: its maps, programs and types.

#[allow(missing_docs, unreachable_pub, unused_imports, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/transfer.skel.rs"));
}

pub(crate) use skeleton::{OpenTransferSkel, TransferMaps, TransferSkel, TransferSkelBuilder, types};

// SAFETY: a plain C structure of integers, laid out by the BPF compiler.
unsafe impl plain::Plain for types::lt_socket_record {}
// SAFETY: the same.
unsafe impl plain::Plain for types::lt_decision {}
// SAFETY: the same.
unsafe impl plain::Plain for types::lt_taken {}
