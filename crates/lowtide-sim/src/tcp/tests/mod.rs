// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sender and receiver over a small path in virtual time.

mod download;
mod ecn;
mod liar;
mod path;
mod properties;
mod recovery;
mod sending;
mod spy;
