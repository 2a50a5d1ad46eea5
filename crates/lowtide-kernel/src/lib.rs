// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lowtide in the Linux kernel: one transfer of one program, its sockets governed by BPF.
//!
//! [`Cgroup`] holds the program, [`Program`] is the program, [`Transfer`] holds the BPF programs that give each
//! of its sockets the law and the signals, and [`Controller`] joins them to a
//! [`Governor`](lowtide_deadline::Governor): sockets' progress goes up, the price weight comes down.
//! [`diagnose`] says what this machine allows.

mod actuator;
mod bpf_skel;
mod budget;
mod capabilities;
mod ceiling;
mod cgroup;
mod clock;
mod controller;
mod copier;
mod dispositions;
mod doctor;
mod download;
mod error;
mod existing;
mod fixed;
mod flows;
mod foreign;
mod goals;
mod hierarchy;
mod law;
mod leftover;
mod libbpf_log;
mod machine;
mod networks;
mod observer;
mod price;
mod program;
mod programs;
mod release;
mod session;
mod setup;
mod socket_record;
mod takeover;
mod terminal;
pub mod trace;
mod transfer;
mod user;

pub use actuator::{KernelActuator, Pressure};
pub use ceiling::SocketLimit;
pub use cgroup::Cgroup;
pub use clock::monotonic_now;
pub use controller::{Controller, Status};
pub use copier::{Copier, Piece, Stream};
pub use doctor::{Diagnosis, Feature, Missing, Need, diagnose};
pub use download::Download;
pub use error::{Error, Result};
pub use existing::{Found, Target};
pub use flows::Flows;
pub use goals::SocketGoal;
pub use law::KernelLaw;
pub use machine::{About, MachineLaw, Pinned};
pub use program::{Exit, Place, Program, inherited_tcp_sockets};
pub use setup::{Direction, Dscp, Registration, Setup, Steering};
pub use takeover::{Selection, Taken};
pub use terminal::{Terminal, controls_us};
pub use transfer::{Snapshot, Totals, Transfer, load_object, open_object};
pub use user::{Caller, User};
