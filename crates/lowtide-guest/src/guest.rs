// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots the guest for one command.

use crate::{
    archive::Archive,
    error::{Doing, Error},
    image::Image,
    software::{self, Program, in_memory, path},
};
use nix::{
    errno::Errno,
    sys::{prctl::set_pdeathsig, signal::Signal},
    unistd::getppid,
};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

const QEMU: &str = "qemu-system-x86_64";
/// What a job has unless it says otherwise.
const MEMORY_MIB: u32 = 512;
/// Where the files of a job are, and the directory that its command starts in.
const JOB: &str = "/job";
/// How often we look whether the machine is off.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of the console that go into an error.
const LAST_LINES: usize = 25;

/// The kernel's command line. The clock is the counter of instructions: known to be 1 GHz, and right by construction,
/// so nothing needs to calibrate or watch it. An address layout by chance, tests of ciphers, or work against flaws of
/// processors, would only cost.
const KERNEL: &str = "console=ttyS0 quiet panic=-1 tsc=reliable tsc_early_khz=1000000 clocksource=tsc nokaslr norandmaps mitigations=off \
    audit=0 nowatchdog cryptomgr.notests random.trust_bootloader=on random.trust_cpu=off";

/// A machine that can be booted any number of times, also at the same time.
#[derive(Debug)]
pub struct Guest {
    image: Image,
    programs: Vec<Program>,
    /// What QEMU says of its version.
    qemu: String,
    /// These with all that they need, from the first boot on.
    software: OnceLock<Vec<u8>>,
}

/// What a guest is booted for.
#[derive(Clone, Debug)]
pub struct Job {
    /// Run by a shell in `/job`; what it writes to `/job/result` is brought back.
    pub command: String,
    /// Files in `/job`, by name.
    pub files: Vec<(String, Vec<u8>)>,
    /// Kernel modules loaded before, each with its parameters: `tcp_cdg backoff_factor=42`.
    pub modules: Vec<String>,
    /// The machine's memory, in MiB. All that it has is in it: a Debian takes 2048.
    pub memory_mib: u32,
    /// Of all chance within. The same seed gives the same run.
    pub seed: u64,
    /// Of the host's time.
    pub timeout: Duration,
}

impl Job {
    /// A command without files and modules.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            files: Vec::new(),
            modules: Vec::new(),
            memory_mib: MEMORY_MIB,
            seed: 1,
            timeout: Duration::from_secs(600),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `/job/result`; empty if there was none.
    pub result: Vec<u8>,
    /// The guest's time from its start to the end of the command.
    pub seconds: f64,
    /// All that was printed.
    pub console: String,
}

impl Guest {
    /// A guest with these programs.
    ///
    /// # Errors
    /// [`Error::NoQemu`], [`Error::NoProgram`], and whatever the system refuses.
    pub fn new(image: Image, programs: &[Program]) -> Result<Self, Error> {
        let version = Command::new(QEMU).arg("--version").stdin(Stdio::null()).output();
        let said = version.ok().filter(|output| output.status.success()).ok_or(Error::NoQemu)?.stdout;
        let qemu = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
        if let Some(missing) = programs.iter().find(|program| !program.path.exists()) {
            return Err(Error::NoProgram(missing.path.clone()));
        }
        Ok(Self { image, programs: programs.to_owned(), qemu, software: OnceLock::new() })
    }

    /// What QEMU says of its version.
    pub fn qemu(&self) -> &str {
        &self.qemu
    }

    /// The kernel that it boots.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Boots it, runs the command, and brings back its result.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::TooLong`], [`Error::Broken`], and whatever the system refuses.
    pub fn run(&self, job: &Job) -> Result<Outcome, Error> {
        let mut files = Files::new().doing(|| "make files in memory".to_owned())?;
        let software = match self.software.get() {
            Some(software) => software,
            None => {
                let packed = software::pack(&self.programs)?;
                self.software.get_or_init(|| packed)
            }
        };
        self.write_initramfs(&mut files.initramfs, software, job).doing(|| "write the guest's files".to_owned())?;
        let mut machine = Machine(self.start(&files, job)?);
        let ended = machine.wait(job.timeout)?;
        let console = String::from_utf8_lossy(&read(&mut files.console)).replace('\r', "");
        let errors = read(&mut files.errors);
        let tail = || last_lines(&format!("{console}{}", String::from_utf8_lossy(&errors)));
        if !ended {
            return Err(Error::TooLong { seconds: job.timeout.as_secs(), console: tail() });
        }
        let out = read(&mut files.out);
        match parse(&out) {
            None => Err(Error::Broken { console: tail() }),
            Some((0, seconds, result)) => Ok(Outcome { result: result.to_owned(), seconds, console }),
            Some((status, ..)) => Err(Error::Failed { status, said: reason(&tail()).to_owned() }),
        }
    }

    fn write_initramfs(&self, file: &mut File, software: &[u8], job: &Job) -> io::Result<()> {
        let mut archive = Archive::default();
        let modules = job.modules.iter().fold(String::new(), |mut text, module| {
            let _ = writeln!(text, "{module}");
            text
        });
        archive.file(&format!("{JOB}/command"), job.command.as_bytes(), false);
        archive.file(&format!("{JOB}/modules"), modules.as_bytes(), false);
        for (name, content) in &job.files {
            archive.file(&format!("{JOB}/{name}"), content, false);
        }
        io::copy(&mut File::open(&self.image.initramfs)?, file)?;
        file.write_all(software)?;
        file.write_all(&archive.finish())
    }

    fn start(&self, files: &Files, job: &Job) -> Result<Child, Error> {
        let errors = files.errors.try_clone().doing(|| "copy a file's descriptor".to_owned())?;
        let [console, out] = [&files.console, &files.out].map(|file| format!("path={}", path(file)));
        let mut command = Command::new(QEMU);
        command
            // KVM would run by the host's clock; and without sleep=off idle time would take as long as on the host
            .args(["-accel", "tcg", "-icount", "shift=0,align=off,sleep=off", "-smp", "1"])
            .args(["-m", &format!("{}M", job.memory_mib)])
            // the seed reaches the kernel by this instruction alone
            .args(["-cpu", "qemu64,+rdrand"])
            .args([
                "-nodefaults",
                "-no-user-config",
                "-no-reboot",
                "-display",
                "none",
                "-vga",
                "none",
                "-monitor",
                "none",
            ])
            .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"])
            .args(["-seed", &(job.seed & 0xffff_ffff).to_string()])
            .args(["-chardev", &format!("file,id=console,{console}"), "-serial", "chardev:console"])
            .args(["-device", "virtio-serial-pci", "-chardev", &format!("file,id=out,{out}")])
            .args(["-device", "virtserialport,chardev=out,nr=1,name=org.lowtide.out"])
            .args(["-initrd", &path(&files.initramfs), "-append", KERNEL, "-kernel"])
            .arg(&self.image.kernel)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let us = std::process::id() as i32;
        let die_with_us = move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // we may have ended before
            if getppid().as_raw() == us { Ok(()) } else { Err(Errno::ESRCH.into()) }
        };
        // SAFETY: between fork and exec there are two system calls; they allocate nothing and take no lock.
        unsafe { command.pre_exec(die_with_us) };
        command.spawn().doing(|| format!("run {QEMU}"))
    }
}

/// The files of one boot, in memory: nothing of them is left, however this ends.
struct Files {
    initramfs: File,
    console: File,
    errors: File,
    out: File,
}

impl Files {
    fn new() -> io::Result<Self> {
        Ok(Self {
            initramfs: in_memory(c"initramfs")?,
            console: in_memory(c"console")?,
            errors: in_memory(c"errors")?,
            out: in_memory(c"out")?,
        })
    }
}

fn read(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    // a file in memory can be read; were it not so, the result would be missing, and that is said
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    bytes
}

/// A QEMU that does not outlive its owner.
struct Machine(Child);

impl Machine {
    /// Whether it ended in time.
    fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let begin = Instant::now();
        while self.0.try_wait().doing(|| format!("wait for {QEMU}"))?.is_none() {
            if begin.elapsed() > timeout {
                return Ok(false);
            }
            thread::sleep(LOOK);
        }
        Ok(true)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        let _ = self.0.wait();
    }
}

/// "lowtide-guest STATUS SECONDS BYTES", a line feed, and so many bytes.
fn parse(out: &[u8]) -> Option<(i32, f64, &[u8])> {
    let end = out.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&out[..end]).ok()?;
    let mut words = head.strip_prefix("lowtide-guest ")?.split(' ');
    let (status, seconds, bytes) = (words.next()?, words.next()?, words.next()?);
    let result = &out[end + 1..];
    (bytes.parse() == Ok(result.len())).then_some(())?;
    Some((status.parse().ok()?, seconds.parse().ok()?, result))
}

/// What the command said of its failure: lowtide in one sentence, others in their last lines.
fn reason(tail: &str) -> &str {
    tail.lines().rev().find_map(|line| line.strip_prefix("lowtide: ")).unwrap_or(tail)
}

/// The end of what was printed. Of a kernel that panics it is what it says first: how it came there may be long.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let begin = panic.unwrap_or(lines.len().saturating_sub(LAST_LINES));
    lines[begin..lines.len().min(begin + LAST_LINES)].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_cut_is_none() {
        assert_eq!(parse(b"lowtide-guest 0 2.5 3\nabc"), Some((0, 2.5, &b"abc"[..])));
        assert_eq!(parse(b"lowtide-guest 1 2.5 0\n"), Some((1, 2.5, &b""[..])));
        for broken in [&b""[..], b"lowtide-guest 0 2.5 3\nab", b"lowtide-guest 0 2.5", b"hello\n"] {
            assert_eq!(parse(broken), None);
        }
    }

    #[test]
    fn the_end_of_a_console() {
        let lines: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let last = last_lines(&(lines.join("\n") + "\n\n"));
        assert_eq!((last.lines().count(), last.lines().last()), (LAST_LINES, Some("line 99")));
        let crash = last_lines(&format!("up\n[1.0] Kernel panic - not syncing\n{}", lines.join("\n")));
        assert!(crash.starts_with("[1.0] Kernel panic") && crash.lines().count() == LAST_LINES);
        assert_eq!(reason("[1.0] up\nlowtide: a flow failed\n[2.0] down"), "a flow failed");
        let crash = last_lines(&format!("up\n[1.0] Kernel panic - not syncing\n{}", lines.join("\n")));
        assert!(crash.starts_with("[1.0] Kernel panic") && crash.lines().count() == LAST_LINES);
        assert_eq!(reason("[1.0] up\n[2.0] down"), "[1.0] up\n[2.0] down");
    }
}
