// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls, and the structures of `lowtide.h`.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    time::Duration,
};

use crate::{Error, Outlook};

const SOL_LOWTIDE: libc::c_int = 0x4c54;
pub(crate) const GOAL: libc::c_int = 1;
pub(crate) const STATUS: libc::c_int = 2;
pub(crate) const LATENCY: libc::c_int = 3;
pub(crate) const PARAMETER: libc::c_int = 4;

const HAS_GOAL: u32 = 1;
const GOVERNED: u32 = 2;
const OWN_LAW: u32 = 4;

/// `struct lowtide_goal`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Goal {
    pub(crate) size: u64,
    pub(crate) within_ns: u64,
}

/// `struct lowtide_parameter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parameter {
    pub(crate) name: [u8; 24],
    pub(crate) value: f64,
}

/// `struct lowtide_status`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Status {
    flags: u32,
    outlook: u32,
    weight: f64,
    size: u64,
    acknowledged: u64,
    target_rate: u64,
    achieved_rate: u64,
    left_ns: i64,
    expected_ns: i64,
}

/// Values that the kernel may read, and write any bytes to.
pub(crate) trait Value: Copy + Default {}
impl Value for u32 {}
impl Value for Goal {}
impl Value for Parameter {}
impl Value for Status {}

pub(crate) fn set<T: Value>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> Result<(), Error> {
    let length = size_of::<T>() as libc::socklen_t;
    let value: *const T = value;
    // SAFETY: the pointer is valid for `length` bytes, and the call only reads them.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), SOL_LOWTIDE, option, value.cast(), length) };
    if result == 0 { Ok(()) } else { Err(refusal(io::Error::last_os_error(), false)) }
}

pub(crate) fn get<T: Value>(socket: BorrowedFd<'_>, option: libc::c_int) -> Result<T, Error> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is valid for `length` bytes, of which any may be written: T is made of integers and
    // floating-point numbers.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), SOL_LOWTIDE, option, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(refusal(io::Error::last_os_error(), true)) }
}

/// Without Lowtide Linux knows no such option: ENOPROTOOPT, or EOPNOTSUPP where one is read. Another system, which it
/// cannot run on, may say anything.
fn refusal(error: io::Error, reading: bool) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => Error::Absent,
        Some(libc::EOPNOTSUPP) if reading => Error::Absent,
        Some(libc::EOPNOTSUPP) => Error::Unsuitable,
        Some(libc::EINVAL) if cfg!(not(target_os = "linux")) => Error::Absent,
        Some(libc::EINVAL) => Error::Value,
        Some(libc::ENOBUFS) => Error::TooMany,
        _ => Error::Other(error),
    }
}

impl From<Status> for crate::Status {
    fn from(status: Status) -> crate::Status {
        let has = |flag| status.flags & flag != 0;
        let duration = |ns: i64| Duration::from_nanos(ns.max(0) as u64);
        let goal = crate::Goal {
            size: status.size,
            acknowledged: status.acknowledged,
            left: duration(status.left_ns),
            governed: has(GOVERNED),
            target_rate: (status.target_rate > 0).then_some(status.target_rate),
            achieved_rate: status.achieved_rate,
            expected: (status.expected_ns >= 0).then(|| duration(status.expected_ns)),
            outlook: match status.outlook {
                0 => Outlook::TooEarly,
                1 => Outlook::OnCourse,
                2 => Outlook::CannotFinish,
                3 => Outlook::ProgramLimited,
                4 => Outlook::Stalled,
                5 => Outlook::Overdue,
                6 => Outlook::Done,
                7 => Outlook::SizeExceeded,
                8 => Outlook::Behind,
                9 => Outlook::Waiting,
                _ => Outlook::Unknown,
            },
        };
        crate::Status { weight: status.weight, own_law: has(OWN_LAW), goal: has(HAS_GOAL).then_some(goal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_becomes_a_status() {
        let told = Status {
            flags: HAS_GOAL | GOVERNED,
            outlook: 1,
            weight: 0.25,
            size: 40,
            acknowledged: 10,
            target_rate: 3,
            achieved_rate: 2,
            left_ns: 1_500_000_000,
            expected_ns: 1_000_000_000,
        };
        let status = crate::Status::from(told);
        let goal = status.goal.unwrap();
        assert_eq!((status.weight, status.own_law, goal.governed), (0.25, false, true));
        assert_eq!((goal.left, goal.expected), (Duration::from_millis(1500), Some(Duration::from_secs(1))));
        assert_eq!((goal.target_rate, goal.outlook), (Some(3), Outlook::OnCourse));

        let late = Status { left_ns: -1, expected_ns: -1, target_rate: 0, outlook: 5, ..told };
        let goal = crate::Status::from(late).goal.unwrap();
        assert_eq!((goal.left, goal.expected, goal.target_rate), (Duration::ZERO, None, None));
        let none = crate::Status::from(Status { flags: OWN_LAW, ..told });
        assert!(none.own_law && none.goal.is_none());
    }
}
