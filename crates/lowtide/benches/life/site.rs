// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link with a server at its far end. Both ends see the same files, so what has arrived can be compared without the
//! link.

use super::{
    Failure,
    axes::Path,
    process::{Server, succeed},
};
use lowtide_emu::{Config, DEVICE, Emulator, Namespace};
use std::{
    cell::Cell,
    fs::{self, File},
    net::{Ipv4Addr, TcpStream},
    path::{self, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Far {
    /// OpenSSH with a key of its own: rsync, scp, sftp, borg and git.
    Ssh,
    /// `rclone serve webdav`: for any HTTP client.
    WebDav,
    /// `rclone serve restic`: restic's REST protocol.
    Restic,
    /// connections.py, which answers with a hash.
    Hash,
}

/// Private to the namespace, so anything will do.
const PORT: u16 = 4000;

pub(crate) struct Site {
    // in the order in which they go: what runs in the namespaces before these
    _server: Server,
    pub(crate) link: Emulator,
    directory: tempfile::TempDir,
    by_route: Cell<bool>,
}

impl Site {
    pub(crate) fn start(path: &Path, far: Far) -> Result<Site, Failure> {
        let link = link(path)?;
        let directory = tempfile::Builder::new().prefix("life-").tempdir()?;
        fs::create_dir(directory.path().join("far"))?;
        let mut command = match far {
            Far::Ssh => sshd(directory.path(), link.b4())?,
            Far::WebDav => serve("webdav", &["--dir-cache-time", "0s"], directory.path(), link.b4()),
            Far::Restic => serve("restic", &[], directory.path(), link.b4()),
            Far::Hash => {
                let mut command = python("connections.py");
                command.args(["serve", &link.b4().to_string(), &PORT.to_string()]);
                command
            }
        };
        let log = directory.path().join("server.log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let server = Server::start(link.b().enter_command(&mut command))?;
        let site = Site { _server: server, link, directory, by_route: Cell::new(false) };
        wait_for(site.link.b(), site.link.b4())
            .map_err(|error| format!("{far:?}: {error}: {}", fs::read_to_string(&log).unwrap_or_default()))?;
        Ok(site)
    }

    /// A file or directory of the near end.
    pub(crate) fn near(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// One of the far end.
    pub(crate) fn far(&self, name: &str) -> PathBuf {
        self.directory.path().join("far").join(name)
    }

    /// Address and port of the server.
    pub(crate) fn address(&self) -> (String, String) {
        (self.link.b4().to_string(), PORT.to_string())
    }

    /// What is at the far end's server under this name.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}:{PORT}/{name}", self.link.b4())
    }

    /// The words that call ssh for whatever goes over it; its host is `life`.
    pub(crate) fn ssh(&self) -> String {
        format!("ssh -F {}", self.near("ssh_config").display())
    }

    /// Whether connections to the far end that choose no law have CUBIC; else they have the system's. By the route: the
    /// namespace's sysctl takes only laws that the whole machine allows to users. A route's law is set after Lowtide's,
    /// so it is there only without Lowtide.
    pub(crate) fn choose_cubic(&self, cubic: bool) -> Result<(), Failure> {
        let far = self.link.b4().to_string();
        let route = |action: &str, law: &[&str]| {
            let mut ip = Command::new("ip");
            succeed(ip.args(["-n", self.link.a().name(), "route", action, &far, "dev", DEVICE]).args(law))
        };
        match (self.by_route.replace(cubic), cubic) {
            (false, true) => route("add", &["congctl", "cubic"]),
            (true, false) => route("delete", &[]),
            _ => Ok(()),
        }
    }

    /// A command of this site, which finds no settings of the machine's user.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.directory.path()).current_dir(self.directory.path());
        command
    }
}

/// The link alone.
pub(crate) fn link(path: &Path) -> Result<Emulator, Failure> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("lf{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let rate = format!("{}mbit", path.rate).parse()?;
    let mut config = Config::new(format!("{name}a"), format!("{name}b"), rate, path.rtt);
    config.realtime = true;
    if let Some(jitter) = path.jitter {
        config.jitter = jitter.parse()?;
    }
    Ok(Emulator::start(config)?)
}

/// Debian's own Python, which has Debian's python3-requests, with a script that stands beside this file.
pub(crate) fn python(script: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(beside(script));
    command
}

/// A script that stands beside this file.
pub(crate) fn beside(script: &str) -> PathBuf {
    path::Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/life").join(script)
}

fn serve(protocol: &str, options: &[&str], directory: &path::Path, address: Ipv4Addr) -> Command {
    let mut command = Command::new("rclone");
    command.args(["serve", protocol, "--addr", &format!("{address}:{PORT}")]).args(options);
    command.arg(directory.join("far")).env("RCLONE_CONFIG", "");
    command
}

/// sshd in a view of the file system in which `/run/sshd` exists, which it wants, and which the machine may not have.
fn sshd(directory: &path::Path, address: Ipv4Addr) -> Result<Command, Failure> {
    let at = |name: &str| directory.join(name);
    for key in ["host_key", "key"] {
        succeed(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at(key)))?;
    }
    let (host, key) = (fs::read_to_string(at("host_key.pub"))?, at("key"));
    fs::write(at("known_hosts"), format!("[{address}]:{PORT} {host}"))?;
    fs::write(
        at("sshd_config"),
        format!(
            "Port {PORT}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM yes\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nPidFile none\nSubsystem sftp internal-sftp\n",
            at("host_key").display(),
            at("key.pub").display()
        ),
    )?;
    fs::write(
        at("ssh_config"),
        format!(
            "Host life\nHostName {address}\nPort {PORT}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nBatchMode yes\n",
            key.display(),
            at("known_hosts").display()
        ),
    )?;
    let script = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f \"$0\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(at("sshd_config"));
    Ok(command)
}

/// Until the server accepts a connection.
fn wait_for(namespace: &Namespace, address: Ipv4Addr) -> Result<(), Failure> {
    let end = Instant::now() + Duration::from_secs(10);
    while namespace.run(|| TcpStream::connect((address, PORT)))?.is_err() {
        if Instant::now() > end {
            return Err("it does not listen after 10 s".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
