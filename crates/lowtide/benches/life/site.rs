// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link with a server at one end, and the programs at the other. Both ends see the same files, so what has arrived
//! can be compared without the link.

use super::{
    Failure,
    axes::{Path, Way},
    job::DATA,
    process::{Server, succeed},
};
use lowtide_emu::{Config, DEVICE, Emulator, Namespace};
use std::{
    cell::Cell,
    fs::{self, File, OpenOptions},
    io::Write,
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{self, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The server.
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
    /// nginx: files to download.
    Nginx,
    /// A registry of container images.
    Registry,
    /// PostgreSQL, whose cluster is what is transferred.
    Postgres,
}

/// Private to the namespace, so anything will do.
const PORT: u16 = 4000;

pub(crate) struct Site {
    // in the order in which they go: what runs in the namespaces before these
    _server: Server,
    pub(crate) link: Emulator,
    pub(crate) way: Way,
    directory: tempfile::TempDir,
    by_route: Cell<Option<&'static str>>,
}

impl Site {
    pub(crate) fn start(path: &Path, way: Way, far: Far) -> Result<Site, Failure> {
        let link = link(path)?;
        let directory = tempfile::Builder::new().prefix("life-").tempdir()?;
        fs::create_dir(directory.path().join("far"))?;
        let (namespace, address) = servers(&link, way);
        let mut command = match far {
            Far::Ssh => sshd(directory.path(), address)?,
            Far::WebDav => serve("webdav", &["--dir-cache-time", "0s"], directory.path(), address),
            Far::Restic => serve("restic", &[], directory.path(), address),
            Far::Hash => {
                let mut command = python("connections.py");
                command.args(["serve", &address.to_string(), &PORT.to_string()]);
                command
            }
            Far::Nginx => nginx(directory.path(), address)?,
            Far::Registry => registry(directory.path(), address)?,
            Far::Postgres => postgres(directory.path(), address)?,
        };
        let log = directory.path().join("server.log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let server = Server::start(namespace.enter_command(&mut command))?;
        wait_for(namespace, address)
            .map_err(|error| format!("{far:?}: {error}: {}", fs::read_to_string(&log).unwrap_or_default()))?;
        Ok(Site { _server: server, link, way, directory, by_route: Cell::new(None) })
    }

    /// Where the programs run.
    pub(crate) fn programs(&self) -> &Namespace {
        match self.way {
            Way::Up => self.link.a(),
            Way::Down => self.link.b(),
        }
    }

    /// Where the server runs.
    pub(crate) fn servers(&self) -> &Namespace {
        servers(&self.link, self.way).0
    }

    /// A file or directory of the near end.
    pub(crate) fn near(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// One of the far end.
    pub(crate) fn far(&self, name: &str) -> PathBuf {
        self.directory.path().join("far").join(name)
    }

    /// What is to be transferred, at the end that sends it.
    pub(crate) fn sent(&self, name: &str) -> PathBuf {
        match self.way {
            Way::Up => self.near(name),
            Way::Down => self.far(name),
        }
    }

    /// What has arrived, at the other end.
    pub(crate) fn arrived(&self, name: &str) -> PathBuf {
        match self.way {
            Way::Up => self.far(name),
            Way::Down => self.near(name),
        }
    }

    /// Address and port of the server.
    pub(crate) fn address(&self) -> (String, String) {
        (servers(&self.link, self.way).1.to_string(), PORT.to_string())
    }

    /// What is at the far end's server under this name.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}:{PORT}/{name}", servers(&self.link, self.way).1)
    }

    /// The words that call ssh for whatever goes over it; its host is `life`.
    pub(crate) fn ssh(&self) -> String {
        format!("ssh -F {}", self.near("ssh_config").display())
    }

    /// The law with which A sends to B on connections that choose none; without one they have the system's. By the
    /// route: the namespace's sysctl takes only laws that the whole machine allows to users. A route's law is set after
    /// Lowtide's.
    pub(crate) fn choose_law(&self, law: Option<&'static str>) -> Result<(), Failure> {
        let far = self.link.b4().to_string();
        let route = |action: &str, law: &[&str]| {
            let mut ip = Command::new("ip");
            succeed(ip.args(["-n", self.link.a().name(), "route", action, &far, "dev", DEVICE]).args(law))
        };
        match (self.by_route.replace(law), law) {
            (before, now) if before == now => Ok(()),
            (_, Some(law)) => route("replace", &["congctl", law]),
            (_, None) => route("delete", &[]),
        }
    }

    /// A command of this site, which finds no settings of the machine's user.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.directory.path()).current_dir(self.directory.path());
        command
    }
}

/// Data go from A to B: the server of a download is at A.
fn servers(link: &Emulator, way: Way) -> (&Namespace, Ipv4Addr) {
    match way {
        Way::Up => (link.b(), link.b4()),
        Way::Down => (link.a(), link.a4()),
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

fn nginx(directory: &path::Path, address: Ipv4Addr) -> Result<Command, Failure> {
    let configuration = directory.join("nginx.conf");
    fs::write(
        &configuration,
        format!(
            "daemon off;\nuser root;\npid {};\nerror_log stderr;\nevents {{}}\nhttp {{\n    access_log off;\n    sendfile on;\n    \
             server {{ listen {address}:{PORT}; root {}; }}\n}}\n",
            directory.join("nginx.pid").display(),
            directory.join("far").display()
        ),
    )?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.args(["-e", "stderr", "-c"]).arg(configuration);
    Ok(command)
}

fn registry(directory: &path::Path, address: Ipv4Addr) -> Result<Command, Failure> {
    let configuration = directory.join("registry.yml");
    fs::write(
        &configuration,
        format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}:{PORT}'}}\n",
            directory.join("far/registry").display()
        ),
    )?;
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(configuration);
    Ok(command)
}

/// PostgreSQL with a new cluster. It refuses to run as root.
fn postgres(directory: &path::Path, address: Ipv4Addr) -> Result<Command, Failure> {
    for place in [directory.to_owned(), directory.join("far")] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
    }
    let data = directory.join("far").join(DATA);
    succeed(Command::new("install").args(["-d", "-o", "postgres", "-m", "700"]).arg(&data))?;
    let as_postgres = |program: path::PathBuf| {
        let mut command = Command::new("setpriv");
        // a change of user clears the signal that it gets when the battery ends
        command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups", "--pdeathsig", "SIGTERM", "--"]);
        command.arg(program).arg("-D").arg(&data);
        command
    };
    let initdb = ["-U", ROLE, "--auth", "trust", "--wal-segsize", "1", "--no-instructions"];
    succeed(as_postgres(postgresql("initdb")?).args(initdb))?;
    let mut access = OpenOptions::new().append(true).open(data.join("pg_hba.conf"))?;
    writeln!(access, "host replication all all trust")?;
    let mut command = as_postgres(postgresql("postgres")?);
    command.args(["-p", &PORT.to_string(), "-c", &format!("listen_addresses={address}")]);
    command.args(["-c", "unix_socket_directories=", "-c", "fsync=off"]);
    Ok(command)
}

/// Whom the cluster belongs to.
pub(crate) const ROLE: &str = "life";

/// A program of PostgreSQL's newest version.
pub(crate) fn postgresql(program: &str) -> Result<PathBuf, Failure> {
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|error| format!("/usr/lib/postgresql: {error}"))?;
    let number = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path())).filter(|folder| number(folder).is_some());
    let newest = folders.max_by_key(number).ok_or("no version of PostgreSQL is in /usr/lib/postgresql")?;
    Ok(newest.join("bin").join(program))
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
