// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two observers at once, or perhaps one.

use crate::observe::{BottleneckSample, FlowSample, Observer, PacketEvent};
use lowtide_net::Time;

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn wants_packets(&self) -> bool {
        self.0.wants_packets() || self.1.wants_packets()
    }

    fn wants_samples(&self) -> bool {
        self.0.wants_samples() || self.1.wants_samples()
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        self.0.flow(sample);
        self.1.flow(sample);
    }

    fn bottleneck(&mut self, sample: &BottleneckSample) {
        self.0.bottleneck(sample);
        self.1.bottleneck(sample);
    }

    fn packet(&mut self, packet: &PacketEvent) {
        self.0.packet(packet);
        self.1.packet(packet);
    }

    fn progress(&mut self, now: Time) {
        self.0.progress(now);
        self.1.progress(now);
    }
}

/// Without any, the simulation is not observed.
impl<O: Observer> Observer for Option<O> {
    fn wants_packets(&self) -> bool {
        self.as_ref().is_some_and(O::wants_packets)
    }

    fn wants_samples(&self) -> bool {
        self.as_ref().is_some_and(O::wants_samples)
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        if let Some(observer) = self {
            observer.flow(sample);
        }
    }

    fn bottleneck(&mut self, sample: &BottleneckSample) {
        if let Some(observer) = self {
            observer.bottleneck(sample);
        }
    }

    fn packet(&mut self, packet: &PacketEvent) {
        if let Some(observer) = self {
            observer.packet(packet);
        }
    }

    fn progress(&mut self, now: Time) {
        if let Some(observer) = self {
            observer.progress(now);
        }
    }
}
