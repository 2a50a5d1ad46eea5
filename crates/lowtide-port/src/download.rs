// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws at the receiver: the C code by which `lowtide run --direction down` chooses the windows that sockets offer.

use crate::{Ported, port::Q16};
use lowtide_cc::{Random, Time};
use std::{
    ffi::c_void,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// `struct segment` of `law/grant.h`: data that arrive. Sequence numbers and timestamps wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// When, microseconds.
    pub now_us: u64,
    /// First byte.
    pub seq: u32,
    /// Bytes.
    pub payload: u32,
    /// Bytes of each packet that it was put together from.
    pub size: u32,
    /// 1: the sender had no more to send then.
    pub pushed: u32,
    /// The sender's timestamp.
    pub tsval: u32,
    /// The timestamp of ours that it echoes.
    pub tsecr: u32,
    /// 1: with CE.
    pub marked: u32,
}

unsafe extern "C" {
    fn lowtide_download_size() -> u64;
    fn lowtide_download_flow_size() -> u64;
    fn lowtide_download_flow_begin(f: *mut c_void, number: u64);
    fn lowtide_download_begin(d: *mut c_void, number: u64);
    fn lowtide_download_arrives(
        f: *mut c_void,
        d: *mut c_void,
        s: *const Segment,
        p: *const u32,
        weight: u64,
        random: u32,
    );
    fn lowtide_download_clamp(f: *const c_void, d: *const c_void, now_us: u64, held: u32) -> u32;
    fn lowtide_download_leaves(d: *mut c_void, now_us: u64, tsval: u32, edge: u32, nxt: u32);
    fn lowtide_download_leave(f: *mut c_void, d: *mut c_void);
}

// SAFETY of all calls below: the functions keep no pointer; the states are as long as C says, aligned to words, and
// ours alone as long as the path is locked; the parameters are as many as the law reads.

/// What a receiver's connections over one path share: to the network they are one flow.
#[derive(Clone)]
pub struct Downloads {
    path: Arc<Mutex<Path>>,
    parameters: Arc<[u32]>,
    weight_q16: u64,
}

struct Path {
    /// `struct lt_download_flow`.
    state: Box<[u64]>,
    /// Connections so far.
    connections: u64,
    random: Random,
}

impl fmt::Debug for Downloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloads").field("weight_q16", &self.weight_q16).finish_non_exhaustive()
    }
}

fn words(bytes: u64) -> Box<[u64]> {
    vec![0; bytes.div_ceil(8) as usize].into()
}

impl Downloads {
    /// Those of a receiver under this law, which [governs](Ported::governs_downloads) them, with a weight in (0, 1];
    /// `None`: without one. `seed`: of the law's chances.
    ///
    /// # Panics
    /// The law does not govern downloads.
    pub fn new(law: &Ported, weight: Option<f64>, seed: u64) -> Self {
        assert!(law.governs_downloads(), "{law:?}");
        let mut state = words(unsafe { lowtide_download_flow_size() });
        unsafe { lowtide_download_flow_begin(state.as_mut_ptr().cast(), law.number().into()) };
        Self {
            path: Arc::new(Mutex::new(Path { state, connections: 0, random: Random::new(seed) })),
            parameters: law.parameters().as_slice().into(),
            weight_q16: weight.map_or(0, |weight| ((weight * Q16) as u64).max(1)),
        }
    }

    /// Another connection.
    pub fn connect(&self) -> Download {
        let mut state = words(unsafe { lowtide_download_size() });
        let mut path = self.lock();
        path.connections += 1;
        unsafe { lowtide_download_begin(state.as_mut_ptr().cast(), path.connections) };
        drop(path);
        Download { downloads: self.clone(), state }
    }

    fn lock(&self) -> MutexGuard<'_, Path> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection; it leaves the others when it is dropped.
pub struct Download {
    downloads: Downloads,
    /// `struct lt_download`.
    state: Box<[u64]>,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download").field("downloads", &self.downloads).finish_non_exhaustive()
    }
}

impl Download {
    /// Data have arrived, before they are acknowledged.
    pub fn arrives(&mut self, segment: &Segment) {
        let mut path = self.downloads.lock();
        let random = (path.random.uniform() * 4_294_967_296.0) as u32;
        let (flow, state) = (path.state.as_mut_ptr().cast(), self.state.as_mut_ptr().cast());
        let (parameters, weight) = (self.downloads.parameters.as_ptr(), self.downloads.weight_q16);
        unsafe { lowtide_download_arrives(flow, state, segment, parameters, weight, random) };
    }

    /// The greatest window that an ACK may offer now, bytes, never below `held`, what has been granted and has not
    /// arrived. `None`: it is not limited, as nothing has arrived yet, or the weight is 1.
    pub fn window(&self, now: Time, held: u32) -> Option<u32> {
        if self.downloads.weight_q16 >= 1 << 16 {
            return None;
        }
        let path = self.downloads.lock();
        let (flow, state) = (path.state.as_ptr().cast(), self.state.as_ptr().cast());
        let window = unsafe { lowtide_download_clamp(flow, state, micros(now), held) };
        (window > 0).then_some(window)
    }

    /// An ACK of what came before `nxt` has left, with this timestamp and right edge.
    pub fn leaves(&mut self, now: Time, tsval: u32, edge: u32, nxt: u32) {
        unsafe { lowtide_download_leaves(self.state.as_mut_ptr().cast(), micros(now), tsval, edge, nxt) };
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let mut path = self.downloads.lock();
        unsafe { lowtide_download_leave(path.state.as_mut_ptr().cast(), self.state.as_mut_ptr().cast()) };
    }
}

const fn micros(time: Time) -> u64 {
    time.as_nanos() / 1000
}
