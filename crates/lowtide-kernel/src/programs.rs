// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF programs: of the object that has all of them, what a transfer, or the whole machine, needs is chosen, given
//! its settings, loaded and attached.

use std::{
    ffi::c_char,
    fs,
    mem::{MaybeUninit, offset_of},
    os::fd::{AsFd, AsRawFd},
    path::Path,
};

use libbpf_rs::{
    ErrorKind, Link, MapCore, MapType, OpenObject, ProgramType, libbpf_sys,
    skel::{OpenSkel, Skel, SkelBuilder},
};

use crate::{
    Cgroup, Error, Flows, KernelActuator, KernelLaw, Pressure, Registration, Result, Setup, Steering,
    bpf_skel::{OpenTransferSkel, TransferMaps, TransferSkel, TransferSkelBuilder, types},
    ceiling::SocketLimit,
    clock::monotonic_now,
    fixed::{Q16, pressure_value},
    foreign::{self, Foreign},
    libbpf_log::LibbpfLog,
    observer::{OBSERVERS, Observer, observer, walks_states},
    takeover::Selection,
};

/// Which sockets the programs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Those of a group that was made for them.
    Made,
    /// Those of a group that was there before.
    Existing,
    /// All of the machine that ask for the law.
    Machine,
}

const SETUP: &str = "the programs have a setup";
const VARIABLES: &str = "the programs have variables";

/// The programs that govern what sockets receive begin so.
const DOWNLOADS: &str = "lt_download_";

/// The loaded programs.
pub(crate) struct Programs {
    skeleton: TransferSkel<'static>,
}

/// What is loaded of the object.
struct Choice<'a> {
    /// The law of what sockets send, if it is ours.
    law: Option<(&'a KernelLaw, Registration)>,
    /// The name under which the kernel is to know it.
    name: &'a str,
    /// Which sockets it is for.
    place: Place,
    /// With what governs what sockets receive.
    downloads: bool,
    /// The state per path, if that is another transfer's.
    flows: Option<&'a Flows>,
}

impl Programs {
    /// Those of a transfer; `group`: one that was there before, and which of its connections are meant.
    pub(crate) fn of_transfer(
        setup: &Setup,
        first: &Steering,
        group: Option<(&Cgroup, &Selection)>,
        log: &LibbpfLog,
    ) -> Result<Programs> {
        let direction = setup.direction;
        let law = (setup.law.is_ours() && direction.has_up()).then_some((&setup.law, setup.registration));
        let name = if setup.law.is_ours() { own_name(setup.law.program()) } else { setup.law.name().to_owned() };
        let place = if group.is_some() { Place::Existing } else { Place::Made };
        let flows = setup.flows.as_ref();
        let choice = Choice { law, name: &name, place, downloads: direction.has_down(), flows };
        Programs::load(&choice, log, |fixed, variables| {
            configure(fixed, variables, &setup.law, &name);
            fixed.transfer = unique();
            fixed.uploads = direction.has_up().into();
            fixed.by_delay = (setup.actuator == KernelActuator::Native).into();
            fixed.weighs_marks = (setup.law.needs_ecn() && setup.actuator == KernelActuator::Native).into();
            fixed.keep_law = setup.keep_law.into();
            fixed.set_tos = setup.dscp.octet().is_some().into();
            fixed.tos = setup.dscp.octet().unwrap_or(0);
            fixed.download_law = setup.law.number();
            if let Some((cgroup, selection)) = group {
                fixed.group_id = cgroup.id();
                fixed.selective = (*selection != Selection::default()).into();
                fixed.port = selection.port.into();
                (fixed.peer.word, fixed.peer_bits) = selection.peer_words();
                for (place, law) in fixed.free_laws.iter_mut().zip(free_laws().split_whitespace()) {
                    write_text(place, law);
                }
            }
            apply(&mut variables.steering, first);
            variables.steering.heartbeat_ns = monotonic_now();
        })
    }

    /// A law of ours under this name, for sockets that have nothing to do with each other. It has no controller to die.
    pub(crate) fn of_machine(law: &KernelLaw, weight: Option<f64>, name: &str, log: &LibbpfLog) -> Result<Programs> {
        let law_too = Some((law, Registration::Link));
        let choice = Choice { law: law_too, name, place: Place::Machine, downloads: false, flows: None };
        Programs::load(&choice, log, |fixed, variables| {
            configure(fixed, variables, law, name);
            fixed.one_window = 0;
            fixed.whole_machine = 1;
            let pressure = weight.map_or_else(Pressure::default, |w| KernelActuator::Native.pressure(law, w, 1.0, 0.0));
            variables.steering.pressure = pressure_value(&pressure);
            variables.steering.weight = weight.unwrap_or_default().to_bits();
            variables.steering.stale_ns = u64::MAX;
        })
    }

    fn load(
        choice: &Choice<'_>,
        log: &LibbpfLog,
        set: impl FnOnce(&mut types::lt_setup, &mut types::bss),
    ) -> Result<Programs> {
        // The skeleton borrows its object for as long as it lives; one small allocation each time is never freed.
        let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = TransferSkelBuilder::default().open(storage).map_err(|error| log.refusal(error))?;
        choose(&mut open, choice).map_err(|error| log.refusal(error))?;
        let fixed = open.maps.rodata_setup_data.as_deref_mut().expect(SETUP);
        set(&mut fixed.setup, open.maps.bss_data.as_deref_mut().expect(VARIABLES));
        let skeleton = open.load().map_err(|error| log.refusal(error))?;
        Ok(Programs { skeleton })
    }

    /// Makes the law known to the kernel as long as the link lives.
    pub(crate) fn register(&mut self, law: &KernelLaw, log: &LibbpfLog) -> Result<Link> {
        let wanted = KernelLaw::registered(law.program());
        let map = self.skeleton.object_mut().maps_mut().find(|map| map.name() == wanted.as_str());
        let link = map.expect("every law of ours is in the object").attach_struct_ops();
        attached("the control law", link, log)
    }

    /// Attaches what goes to a group.
    pub(crate) fn attach(&self, cgroup: &Cgroup, log: &LibbpfLog) -> Result<Vec<Link>> {
        let (fd, programs) = (cgroup.as_fd().as_raw_fd(), &self.skeleton.progs);
        [
            ("the egress program", &programs.lt_egress),
            ("the ingress program", &programs.lt_ingress),
            ("the program for setsockopt", &programs.lt_setsockopt),
            ("the program for getsockopt", &programs.lt_getsockopt),
            ("the socket program", &programs.lt_sockops),
            ("the program for closing sockets", &programs.lt_sock_release),
        ]
        .into_iter()
        .map(|(what, program)| {
            let link = program.attach_cgroup(fd);
            let refused = link.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
            let attach_type = program.attach_type() as u32;
            match refused.then(|| foreign::forbidding(cgroup.path(), attach_type)).flatten() {
                Some(Foreign { group, id }) => Err(Error::ForbiddenByAnother { what, group, id }),
                None => attached(what, link, log),
            }
        })
        .collect()
    }

    /// Attaches what governs downloads. It stays with the group when this process is gone, for as long as the group or
    /// one of its sockets lives: what it took from windows it has to give back.
    pub(crate) fn attach_downloads(&self, cgroup: &Cgroup) -> Result<()> {
        let (fd, programs) = (cgroup.as_fd().as_raw_fd(), &self.skeleton.progs);
        for (what, program) in [
            ("the program for what arrives", &programs.lt_download_in),
            ("the program for windows that leave", &programs.lt_download_out),
            ("the program for the windows of sockets", &programs.lt_download_ops),
        ] {
            let (program_fd, kind) = (program.as_fd().as_raw_fd(), program.attach_type() as u32);
            // SAFETY: a system call on two descriptors that are open here.
            let failed = unsafe { libbpf_sys::bpf_prog_attach(program_fd, fd, kind, libbpf_sys::BPF_F_ALLOW_MULTI) };
            match std::io::Error::from_raw_os_error(-failed) {
                _ if failed == 0 => {}
                error => {
                    let foreign = foreign::forbidding(cgroup.path(), kind);
                    let refused = error.kind() == std::io::ErrorKind::PermissionDenied;
                    return Err(match foreign.filter(|_| refused) {
                        Some(Foreign { group, id }) => Error::ForbiddenByAnother { what, group, id },
                        None => Error::Attach { what, reason: error.to_string() },
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether another transfer governs this group itself, and came first. Only root can make it look so; a lock
    /// on the group's directory is for every user who can open it.
    pub(crate) fn come_second(&self, cgroup: &Cgroup) -> bool {
        let ours = &self.skeleton.progs.lt_sockops;
        foreign::has_older(cgroup.path(), ours.attach_type() as u32, c"lt_sockops", ours.as_fd())
    }

    /// What reads all sockets.
    pub(crate) fn observe(&self, log: &LibbpfLog) -> Result<Observer> {
        let programs = &self.skeleton.progs;
        let iterator = if walks_states() {
            programs.lt_observe.attach_iter(self.skeleton.maps.sockets.as_fd())
        } else {
            programs.lt_observe_tcp.attach()
        };
        attached("the socket iterator", iterator, log).map(Observer)
    }

    pub(crate) fn maps(&self) -> &TransferMaps<'static> {
        &self.skeleton.maps
    }

    pub(crate) fn variables(&mut self) -> &mut types::bss {
        self.skeleton.maps.bss_data.as_deref_mut().expect(VARIABLES)
    }

    /// What gives open sockets of a group the law, and what gives them back what they had: to be read in each network
    /// namespace.
    pub(crate) fn takeover(&self, log: &LibbpfLog) -> Result<[Link; 2]> {
        let [take, give_back] = [&self.skeleton.progs.lt_take, &self.skeleton.progs.lt_give_back]
            .map(|program| attached("the program for open sockets", program.attach(), log));
        Ok([take?, give_back?])
    }

    pub(crate) fn setup(&self) -> &types::lt_setup {
        &self.skeleton.maps.rodata_setup_data.expect(SETUP).setup
    }

    pub(crate) fn pin_variables(&mut self, path: &Path) -> libbpf_rs::Result<()> {
        self.skeleton.maps.bss.pin(path)
    }

    pub(crate) fn pin_setup(&mut self, path: &Path) -> libbpf_rs::Result<()> {
        self.skeleton.maps.rodata_setup.pin(path)
    }

    /// Each program, and how many instructions the kernel's verifier went through for it; 0 if the kernel does not say.
    pub(crate) fn verified(&self) -> Vec<(String, u32)> {
        let loaded = self.skeleton.object().progs().filter(|program| program.autoload());
        loaded
            .map(|program| {
                (program.name().to_string_lossy().into_owned(), foreign::about(program.as_fd()).verified_insns)
            })
            .collect()
    }
}

pub(crate) fn attached(what: &'static str, link: libbpf_rs::Result<Link>, log: &LibbpfLog) -> Result<Link> {
    link.map_err(|error| Error::Attach { what, reason: log.reason(&error) })
}

/// Of our laws the kernel gets the one that is asked for, under this name, or none; and without a group nothing that
/// goes to one.
fn choose(
    open: &mut OpenTransferSkel<'_>,
    &Choice { law, name, place, downloads, flows }: &Choice<'_>,
) -> libbpf_rs::Result<()> {
    if let Some(flows) = flows {
        open.maps.flows.reuse_fd(flows.as_fd())?;
    }
    let ours = law.map(|(law, _)| law.program());
    for mut map in open.open_object_mut().maps_mut() {
        if map.map_type() != MapType::StructOps {
            continue;
        }
        let is_it = map.name().to_str().and_then(|map| map.strip_prefix("lt_")) == ours;
        map.set_autocreate(is_it)?;
        if is_it {
            write_name(map.initial_value_mut().expect("a law has a structure"), name);
        }
        if is_it && law.is_some_and(|(_, registration)| registration == Registration::Plain) {
            map.set_map_flags(0)?; // the section's name asks for a link
        }
    }
    let prefix = ours.map(|law| format!("{law}_"));
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        match program.prog_type() {
            ProgramType::StructOps => {
                program.set_autoload(prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix)));
            }
            ProgramType::Tracing if OBSERVERS.contains(&&*name) => program.set_autoload(name == observer()),
            ProgramType::Tracing => program.set_autoload(place == Place::Existing && !name.starts_with(DOWNLOADS)),
            _ => program.set_autoload(place != Place::Machine && (downloads || !name.starts_with(DOWNLOADS))),
        }
    }
    Ok(())
}

/// What follows from the law alone.
fn configure(fixed: &mut types::lt_setup, variables: &mut types::bss, law: &KernelLaw, name: &str) {
    match law {
        KernelLaw::Own(ported) => {
            variables.law_parameters = *ported.parameters();
            // sockets that share one window have the parameters of all
            let settable = if law.has_one_window() { Vec::new() } else { ported.settable() };
            for (slot, settable) in fixed.settable.iter_mut().zip(settable) {
                write_text(&mut slot.name, settable.name);
                (slot.least, slot.most, slot.unit) = (settable.least, settable.most, settable.unit);
            }
        }
        KernelLaw::Kernel(_) => {}
    }
    fixed.uploads = 1;
    fixed.ours = law.is_ours().into();
    fixed.needs_ecn = law.needs_ecn().into();
    fixed.one_window = law.has_one_window().into();
    write_text(&mut fixed.law, name);
    write_text(&mut fixed.law_text, &law.to_string());
}

/// New values from the controller; no sign of life.
pub(crate) fn apply(variable: &mut types::lt_steering, steering: &Steering) {
    variable.pressure = pressure_value(&steering.pressure);
    variable.weight = steering.weight.to_bits();
    variable.download_held = steering.download_held.into();
    variable.download_weight_q16 = (steering.download_weight.clamp(0.0, 1.0) * Q16) as u32;
    variable.sockets = steering.sockets;
    variable.window_q16 = (steering.window.max(0.0) * Q16) as u64;
    variable.stale_ns = steering.stale.as_nanos() as u64;
    let limit = steering.limit.unwrap_or(SocketLimit { each: 0, sockets: 0 });
    (variable.socket_limit, variable.limit_sockets) = (limit.each, limit.sockets);
}

/// `lt_LAW_` and eight hex digits: unlike any other run's, within the kernel's 15 characters.
fn own_name(law: &str) -> String {
    format!("{}_{:08x}", KernelLaw::registered(law), unique())
}

/// A number that no other transfer has.
fn unique() -> u32 {
    ((u64::from(std::process::id()) << 32 ^ monotonic_now()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Laws that a program may choose without a capability.
fn free_laws() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default()
}

/// As much of a text as fits, with a zero at the end.
fn write_text<const N: usize>(field: &mut [c_char; N], text: &str) {
    *field = [0; N];
    for (slot, byte) in field.iter_mut().take(N - 1).zip(text.bytes()) {
        *slot = byte as c_char;
    }
}

/// The same into the structure of a law, `struct tcp_congestion_ops`.
fn write_name(law: &mut [u8], name: &str) {
    let mut field = [0; 16];
    write_text(&mut field, name);
    let bytes = field.map(|byte| byte as u8);
    law[offset_of!(types::tcp_congestion_ops, name)..][..bytes.len()].copy_from_slice(&bytes);
}

/// The text up to its zero.
pub(crate) fn text_of(field: &[c_char]) -> String {
    field.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8 as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 7 counts the arguments that the source has, and refuses a sixth. Before it those counted that the compiler
    /// had left.
    #[test]
    fn no_function_of_ours_has_more_arguments_than_linux_7_takes() {
        use libbpf_rs::btf::{
            Btf, ReferencesType,
            types::{Func, FuncProto},
        };
        let btf = Btf::from_path(concat!(env!("OUT_DIR"), "/transfer.bpf.o")).unwrap();
        let functions: Vec<_> = btf
            .type_by_kind::<Func<'_>>()
            .map(|function| {
                let proto = FuncProto::try_from(function.referenced_type()).expect("a function has a prototype");
                (function.name().unwrap().to_owned(), proto.len())
            })
            .collect();
        assert!(functions.len() > 50);
        let too_many: Vec<_> = functions.iter().filter(|(_, arguments)| *arguments > 5).collect();
        assert!(too_many.is_empty(), "pass a structure, or inline the call: {too_many:?}");
    }

    #[test]
    fn names_fit_and_differ() {
        let (a, b) = (own_name("cdg"), own_name("cdg"));
        assert!(a.len() <= 15 && a != b, "{a} {b}");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let mut field = [1; 4];
        write_text(&mut field, "abcdef");
        assert_eq!((text_of(&field).as_str(), field[3]), ("abc", 0));
    }
}
