// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cgroup that a run is started in: PROGRAM stays in it, and where it cannot have a group there one sentence says
//! why.

#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/terminal.rs"]
mod terminal;

use std::{
    fs::{self, File},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::chown,
    },
    path::{Path, PathBuf},
    process::Command,
    ptr, thread,
    time::Duration,
};

use libbpf_rs::libbpf_sys::{self, BPF_CGROUP_INET_EGRESS, BPF_F_ALLOW_MULTI, BPF_F_ALLOW_OVERRIDE};
use lifecycle::{
    Running, children, finish, group_of, groups_of, name, needs_kernel, own_cgroup, public_copy, run_script, until,
    within,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use terminal::Terminal;

/// A cgroup of ours, below that of the tests.
struct Group(PathBuf);

impl Group {
    fn new(test: &str) -> Group {
        Group::at(own_cgroup().join(name(test)))
    }

    fn at(path: PathBuf) -> Group {
        fs::create_dir(&path).unwrap();
        Group(path)
    }

    /// A shell script in it, that sees the group as `$GROUP` and the command as `$LOWTIDE`.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > $GROUP/cgroup.procs && {script}")]);
        command.env("GROUP", &self.0).env("LOWTIDE", env!("CARGO_BIN_EXE_lowtide"));
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = fs::remove_dir(&self.0);
        } else {
            within(Duration::from_secs(5), "the end of the group", || fs::remove_dir(&self.0).ok());
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_a_container_that_sees_the_hosts_hierarchy_the_program_stays_in_the_containers_group() {
    needs_kernel();
    let group = Group::new("container");
    let script = "exec unshare -C $LOWTIDE run --quiet -- sh -c 'echo ready; exec sleep 20'";
    let run = Running::start(&mut group.shell(script));
    run.says("ready");
    let program = until("PROGRAM", || children(run.pid()).first().copied());
    let (container, found) = (group_of(run.pid()), group_of(program));
    assert!(container.ends_with(&name("container")), "{container}");
    assert!(found.starts_with(&format!("{container}/lowtide-{}-", run.pid())), "{found} is not in {container}");
    drop(run);
}

/// Whether PROGRAM of an ordinary user gets out of its group into one of that user's, where `owner` has the group
/// around both; and what Lowtide says.
fn leaves(test: &str, owner: u32) -> (bool, String) {
    const USER: u32 = 65534;
    let (_copy, lowtide) = public_copy();
    let around = Group::new(test);
    let (start, theirs) = (Group::at(around.0.join("start")), Group::at(around.0.join("theirs")));
    for (group, owner) in [(&around, owner), (&theirs, USER)] {
        chown(group.0.join("cgroup.procs"), Some(owner), None).unwrap();
    }
    let script = "cd / && SUDO_UID=65534 exec $COPY run -- sh -c 'echo 0 > $THEIRS/cgroup.procs; echo ready; sleep 1'";
    let run = Running::start(start.shell(script).env("COPY", lowtide).env("THEIRS", &theirs.0));
    run.says("ready");
    let program = *children(run.pid()).first().expect("the program");
    let left = group_of(program).ends_with("/theirs");
    let ended = run.end();
    assert!(ended.status.success(), "{ended:?}");
    (left, ended.err)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn only_who_has_the_group_around_leaves_ours() {
    needs_kernel();
    const LEFT: &str = "moved out of its group";
    let (left, said) = leaves("roots", 0);
    assert!(!left && !said.contains(LEFT), "{said}");
    let (left, said) = leaves("delegated", 65534);
    assert!(left && said.contains(LEFT), "{said}");
}

const STAYS: &str = "sleep 60 & echo ready; wait";

/// Moves that script of a run about, and its child, whose end is the script's. Gives what Lowtide has to say, in order.
fn move_about(run: i32, program: i32, mut says: impl FnMut(&str)) -> [&'static str; 2] {
    let told = [
        "PROGRAM was moved out of its group: connections that it opens from now on are not governed",
        "PROGRAM runs in its group again",
    ];
    let enter = |group: &Path, pid: i32| fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
    let group = groups_of(run).pop().expect("its group");
    let child = children(program)[0];
    // neither of these is worth a word
    let below = Group::at(group.join("below"));
    enter(&below.0, program);
    enter(&own_cgroup(), child);
    thread::sleep(Duration::from_millis(500));
    enter(&group, child);
    enter(&own_cgroup(), program);
    says(told[0]);
    enter(&group, program);
    says(told[1]);
    kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    told
}

fn once_each(said: &str, told: &[&str]) {
    let counts: Vec<_> = told.iter().map(|it| said.matches(it).count()).collect();
    assert!(counts.iter().all(|count| *count == 1), "{counts:?} in {said}");
}

/// What PROGRAM itself opens is the transfer, whoever else is in its group.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_that_is_moved_is_told_of_though_others_stay() {
    needs_kernel();
    let run = Running::start(&mut run_script(&[], STAYS));
    run.says("ready");
    let program = children(run.pid())[0];
    let told = move_about(run.pid(), program, |text| until(text, || run.err().contains(text).then_some(())));
    once_each(&run.end().err, &told);
    // on a terminal of its own it is not the process that Lowtide started
    let script = format!("exec {} run -- bash -c '{STAYS}'", env!("CARGO_BIN_EXE_lowtide"));
    let mut terminal = Terminal::sized(&script, 24, 200);
    terminal.shows("ready");
    let run = terminal.shell();
    let program = children(children(run)[0])[0];
    let told = move_about(run, program, |text| terminal.shows(text));
    once_each(&terminal.end().1, &told);
}

/// Takes every cgroup v2 hierarchy out of sight.
const HIDE: &str = "for path in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/self/mounts); do umount -l $path; done;";

/// `run` and `doctor` in a group, under `wrapper` and after `before`: what `run` says, and what `doctor` says of one
/// feature.
fn refused_in(group: &Group, wrapper: &str, before: &str, feature: &str) -> [String; 2] {
    let shell = |script: &str| {
        let mut command = group.shell(&format!("exec {wrapper} sh -c \"$SCRIPT\""));
        command.env("SCRIPT", format!("{before}exec {script}"));
        command
    };
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let run = finish(shell("$LOWTIDE run -- touch $MARK").env("MARK", &mark));
    assert_eq!(run.status.code(), Some(125), "{run:?}");
    assert!(!mark.exists(), "PROGRAM was started");
    let doctor = finish(&mut shell("$LOWTIDE doctor"));
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let missing = format!("missing  {feature}: ");
    let (_, said) = doctor.out.split_once(&missing).unwrap_or_else(|| panic!("no {missing:?} in {}", doctor.out));
    let said: Vec<_> = said.lines().take(3).collect();
    println!("{}\n{}", run.sentence(), said.join("\n"));
    [run.sentence().to_owned(), said.join("\n")]
}

fn says(answers: &[String], parts: &[&str]) {
    for answer in answers {
        for part in parts {
            assert!(answer.contains(part), "no {part:?} in {answer:?}");
        }
        assert!(!answer.contains("run as root"), "{answer:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_process_whose_group_is_out_of_sight_is_told_so() {
    needs_kernel();
    let (group, other) = (Group::new("sight"), Group::new("other"));
    // a namespace of the first group, left for the second, which has no name there
    let before = format!("echo $$ > {}/cgroup.procs && {HIDE} ", other.0.display());
    let answers = refused_in(&group, "unshare -C -m", &before, "cgroup v2");
    says(&answers, &[&format!("/../{}", name("other")), "outside", "of this container"]);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_a_threaded_group_run_and_doctor_say_so() {
    needs_kernel();
    let above = Group::new("domain");
    let group = Group::at(above.0.join("threads"));
    fs::write(group.0.join("cgroup.type"), "threaded").unwrap();
    let answers = refused_in(&group, "", "", "cgroup v2");
    says(&answers, &[&group.0.display().to_string(), "threaded", "systemd-run"]);
    let left = fs::read_dir(&group.0).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(left, 0, "groups are left");
}

/// A BPF program of another owner on a group, which lets everything pass; as long as this value.
struct ForeignProgram {
    program: OwnedFd,
    group: File,
    place: libbpf_sys::bpf_attach_type,
}

impl ForeignProgram {
    /// On what the group sends.
    fn attach(group: &Path, flags: u32) -> ForeignProgram {
        ForeignProgram::attach_to(group, flags, (libbpf_sys::BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS))
    }

    fn attach_to(
        group: &Path,
        flags: u32,
        (kind, place): (libbpf_sys::bpf_prog_type, libbpf_sys::bpf_attach_type),
    ) -> ForeignProgram {
        // r0 = 1; exit
        let code = [0x0000_0001_0000_00b7_u64, 0x95];
        let group = File::open(group).unwrap();
        // SAFETY: plain system calls; the code is as long as is said, the descriptor new and ours.
        unsafe {
            let name = c"foreign".as_ptr();
            let fd = libbpf_sys::bpf_prog_load(kind, name, c"GPL".as_ptr(), code.as_ptr().cast(), 2, ptr::null_mut());
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            let program = OwnedFd::from_raw_fd(fd);
            let result = libbpf_sys::bpf_prog_attach(fd, group.as_raw_fd(), place, flags);
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
            ForeignProgram { program, group, place }
        }
    }

    /// As the kernel counts programs.
    fn id(&self) -> u32 {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut length = size_of_val(&info) as u32;
        // SAFETY: the kernel writes at most so many bytes into a structure of integers.
        let result =
            unsafe { libbpf_sys::bpf_prog_get_info_by_fd(self.program.as_raw_fd(), &raw mut info, &raw mut length) };
        assert_eq!(result, 0);
        info.id
    }
}

impl Drop for ForeignProgram {
    fn drop(&mut self) {
        // SAFETY: a system call with integer arguments.
        unsafe {
            libbpf_sys::bpf_prog_detach2(self.program.as_raw_fd(), self.group.as_raw_fd(), self.place);
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn below_a_program_that_allows_no_other_run_and_doctor_say_so() {
    needs_kernel();
    let above = Group::new("foreign");
    let group = Group::at(above.0.join("below"));
    let foreign = ForeignProgram::attach(&above.0, 0);
    let answers = refused_in(&group, "", "", "cgroup BPF programs");
    let (id, path) = (foreign.id().to_string(), above.0.display().to_string());
    says(&answers, &[&format!("program {id} "), &format!("cgroup {path} "), "BPF_F_ALLOW_MULTI", "systemd-run"]);
    drop(foreign);
    // one that may be overridden, or has company, is no obstacle
    for flags in [BPF_F_ALLOW_OVERRIDE, BPF_F_ALLOW_MULTI] {
        let foreign = ForeignProgram::attach(&above.0, flags);
        let ended = finish(&mut group.shell("exec $LOWTIDE run --quiet -- echo ran"));
        assert_eq!((ended.status.code(), ended.out.as_str()), (Some(0), "ran\n"), "{ended:?}");
        drop(foreign);
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn doctor_names_who_else_sees_connections() {
    needs_kernel();
    let above = Group::new("rival");
    let group = Group::at(above.0.join("below"));
    let doctor = || finish(&mut group.shell("exec $LOWTIDE doctor")).out;
    assert!(!doctor().contains(" foreign (id "));
    let kinds = (libbpf_sys::BPF_PROG_TYPE_SOCK_OPS, libbpf_sys::BPF_CGROUP_SOCK_OPS);
    let foreign = ForeignProgram::attach_to(&above.0, BPF_F_ALLOW_MULTI, kinds);
    let said = doctor();
    let named = format!("the sock_ops program foreign (id {}) on {}", foreign.id(), above.0.display());
    assert!(said.contains("missing  other programs on connections: ") && said.contains(&named), "{said}");
    assert!(said.contains("lowtide run works here."), "it is a warning: {said}");
    drop(foreign);
    // bpftune sets laws from programs that it attaches when it likes: running is enough
    let directory = tempfile::tempdir().unwrap();
    let bpftune = directory.path().join("bpftune");
    fs::copy("/bin/sleep", &bpftune).unwrap();
    let running = Running::start(Command::new(&bpftune).arg("600"));
    until("its name", || doctor().contains("bpftune, whose tcp_conn tuner sets the law").then_some(()));
    drop(running);
    assert!(!doctor().contains("bpftune"));
}
