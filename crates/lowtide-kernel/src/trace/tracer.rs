// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of traces: one ring buffer for all the programs that are traced, and the switch in each of them.

use std::{cell::RefCell, io, rc::Rc, time::Duration};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};

use super::{
    Record, Traceable,
    find::{KEY, unread},
};
use crate::{Error, Result, bpf_skel::types::lt_tracing, clock::monotonic_now};

/// Without a sign of life for so long, the programs stop. [`Tracer::listen`] gives one each time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A trace under way. It ends with this value, and soon after a process that was killed.
pub struct Tracer {
    sources: Vec<Traceable>,
    ring: MapHandle,
    listener: RingBuffer<'static>,
    /// `None`: what is no record of this version.
    heard: Rc<RefCell<Vec<Option<Record>>>>,
    port: u16,
    /// Dropped before it began, of each source.
    before: Vec<u64>,
    on: bool,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Switches traces on in `sources`, with room for about so many bytes of records that have not been listened to.
    /// `port`: only connections with this port on either side.
    ///
    /// # Errors
    /// [`Error::TracedAlready`]. [`Error::Trace`]: the kernel refuses.
    pub fn start(sources: Vec<Traceable>, port: Option<u16>, bytes: u32) -> Result<Tracer> {
        for source in &sources {
            if source.is_traced()? {
                return Err(Error::TracedAlready { law: source.law.clone() });
            }
        }
        // SAFETY: a system call with an integer.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.clamp(4096, 1 << 16) as u32;
        let size = bytes.clamp(page, 1 << 30).next_power_of_two();
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let ring = MapHandle::create(MapType::RingBuf, Some("lt_trace_ring"), 0, 0, size, &options).map_err(unread)?;
        let heard = Rc::new(RefCell::new(Vec::new()));
        let sink = heard.clone();
        let mut builder = RingBufferBuilder::new();
        let hear = move |bytes: &[u8]| {
            sink.borrow_mut().push(Record::read(bytes));
            0
        };
        builder.add(&ring, hear).map_err(unread)?;
        let listener = builder.build().map_err(unread)?;
        let before = sources.iter().map(drops).collect::<Result<_>>()?;
        let mut tracer = Tracer { sources, ring, listener, heard, port: port.unwrap_or(0), before, on: true };
        tracer.switch_on()?;
        Ok(tracer)
    }

    fn switch_on(&mut self) -> Result<()> {
        use std::os::fd::{AsFd, AsRawFd};
        let ring = self.ring.as_fd().as_raw_fd().to_ne_bytes();
        for source in &self.sources {
            source.ring.update(&KEY, &ring, MapFlags::ANY).map_err(unread)?;
        }
        self.renew()
    }

    fn renew(&self) -> Result<()> {
        let until_ns = monotonic_now() + PATIENCE.as_nanos() as u64;
        for (number, source) in self.sources.iter().enumerate() {
            let switch = lt_tracing { until_ns, port: self.port.into(), source: number as u32 };
            source.switch.update(&KEY, &bytes_of(switch), MapFlags::ANY).map_err(unread)?;
        }
        Ok(())
    }

    /// What is traced.
    pub fn sources(&self) -> &[Traceable] {
        &self.sources
    }

    /// Waits for records, for this long at most, and gives what came. To be called at least once a second.
    ///
    /// # Errors
    /// [`Error::Trace`]. [`Error::OtherVersion`]: programs of another version write other records.
    pub fn listen(&mut self, patience: Duration) -> Result<Vec<Record>> {
        self.renew()?;
        match self.listener.poll_raw(patience) {
            0.. => {}
            code if code == -libc::EINTR => {} // as after a stop; the records are still there
            code => return Err(unread(io::Error::from_raw_os_error(-code))),
        }
        self.taken()
    }

    /// Whether something of what is traced is still in the kernel.
    pub fn has_sources(&self) -> bool {
        self.sources.iter().any(Traceable::lives)
    }

    /// Records that did not fit into the buffer, so far; for each of the sources.
    ///
    /// # Errors
    /// [`Error::Trace`].
    pub fn dropped(&self) -> Result<Vec<u64>> {
        self.sources
            .iter()
            .zip(&self.before)
            .map(|(source, before)| Ok(drops(source)?.saturating_sub(*before)))
            .collect()
    }

    /// Switches everything off, and gives what came until then.
    ///
    /// # Errors
    /// As [`Tracer::listen`].
    pub fn stop(&mut self) -> Result<Vec<Record>> {
        self.switch_off()?;
        self.listener.consume().map_err(unread)?;
        self.taken()
    }

    fn taken(&self) -> Result<Vec<Record>> {
        self.heard.take().into_iter().collect::<Option<_>>().ok_or(Error::OtherVersion)
    }

    fn switch_off(&mut self) -> Result<()> {
        self.on = false;
        let off = bytes_of(lt_tracing::default());
        // all of them, whatever one of them says
        let outcomes: Vec<_> = self
            .sources
            .iter()
            .flat_map(|source| [source.switch.update(&KEY, &off, MapFlags::ANY), source.ring.delete(&KEY)])
            .collect();
        outcomes.into_iter().collect::<libbpf_rs::Result<()>>().map_err(unread)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if self.on {
            let _ = self.switch_off(); // it ends by itself otherwise
        }
    }
}

fn drops(source: &Traceable) -> Result<u64> {
    let counts = source.drops.lookup_percpu(&KEY, MapFlags::ANY).map_err(unread)?.unwrap_or_default();
    Ok(counts.iter().filter_map(|bytes| Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))).sum())
}

/// In the order of `struct lt_tracing`.
fn bytes_of(switch: lt_tracing) -> [u8; size_of::<lt_tracing>()] {
    let mut bytes = [0; size_of::<lt_tracing>()];
    bytes[..8].copy_from_slice(&switch.until_ns.to_ne_bytes());
    bytes[8..12].copy_from_slice(&switch.port.to_ne_bytes());
    bytes[12..].copy_from_slice(&switch.source.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_has_the_order_of_its_structure() {
        let bytes = bytes_of(lt_tracing { until_ns: 5, port: 7, source: 1 });
        assert_eq!(bytes[..8], 5u64.to_ne_bytes());
        assert_eq!(bytes[8..], [7u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat());
    }
}
