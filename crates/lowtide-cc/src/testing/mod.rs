// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of several laws share: three toy paths, by the signals that their laws use, and arbitrary events.
//!
//! Each path has what its laws react to and nothing else, so that a test can be computed by hand; one path for all
//! would be the simulator, which depends on this crate.

pub(crate) mod any_events;
/// For laws that use marks: a queue that marks and never drops.
pub(crate) mod marking_path;
/// For laws that use delay: a queue of fixed rate, with the queues of cross traffic.
pub(crate) mod queue_path;
/// For laws that use the delivery rate: rate samples, losses by three later ACKs, pacing, an idle application.
pub(crate) mod rate_path;
