// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that receive: what each downloads, how it is called, and how one sees that it arrived.

use super::{
    Failure,
    axes::Way,
    calls::{committed, files, git_in, nothing, parts, rclone, restic, restic_backup, restic_init},
    job::{DATA, Job},
    process::succeed,
    programs::{BESIDE, Program},
    site::{Far, ROLE, Site, beside, postgresql},
    tree::{Shape, same},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) const PULLS: [Program; 9] = [
    Program {
        name: "curl-parallel",
        about: "`curl --parallel`, 4 files from nginx",
        way: Way::Down,
        connections: 4,
        beside: BESIDE,
        far: Far::Nginx,
        shape: |path| parts(path, 4),
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("curl");
            command.args(["-sSf", "--parallel", "--parallel-immediate", "--create-dirs", "-o"]);
            command.arg(site.arrived(&job.name).join("file-000#1"));
            command.arg(site.url(&format!("{DATA}/file-000[0-{}]", job.shape.count - 1)));
            command
        },
        arrived: files,
    },
    Program {
        name: "wget",
        about: "wget, one file from nginx",
        way: Way::Down,
        connections: 1,
        beside: BESIDE,
        far: Far::Nginx,
        shape: |path| parts(path, 1),
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("wget");
            command.args(["-nv", "-P"]).arg(site.arrived(&job.name)).arg(site.url(&format!("{DATA}/file-0000")));
            command
        },
        arrived: files,
    },
    Program {
        name: "apt-get",
        about: "apt-get download, 8 packages from nginx",
        way: Way::Down,
        connections: 1,
        beside: BESIDE,
        far: Far::Nginx,
        shape: |path| parts(path, 8),
        prepare: |site, job| {
            let (repository, state) = (site.far(&job.name), apt_state(site, job));
            let mut make = Command::new("sh");
            succeed(make.arg(beside("packages.sh")).arg(site.sent(DATA)).arg(&repository))?;
            for folder in ["state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d"] {
                fs::create_dir_all(state.join(folder))?;
            }
            fs::create_dir(site.arrived(&job.name))?;
            fs::write(state.join("status"), "")?;
            fs::write(state.join("sources.list"), format!("deb [trusted=yes] {} ./\n", site.url(&job.name)))?;
            fs::write(
                state.join("apt.conf"),
                format!(
                    "Dir::State \"{0}/state\";\nDir::State::status \"{0}/status\";\nDir::Cache \"{0}/cache\";\nDir::Etc \"{0}/etc\";\n\
                     Dir::Etc::sourcelist \"{0}/sources.list\";\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n",
                    state.display()
                ),
            )?;
            let mut update = apt_get(site, job);
            succeed(site.programs().enter_command(update.arg("update")))
        },
        transfer: |site, job| {
            let mut command = apt_get(site, job);
            command.arg("download").args((0..job.shape.count).map(|number| format!("file-{number:04}")));
            command.current_dir(site.arrived(&job.name));
            command
        },
        arrived: |site, job| same(&site.far(&job.name).join("pool"), &site.arrived(&job.name)),
    },
    Program {
        name: "rclone-pull",
        about: "rclone copy from WebDAV, 4 transfers, 4 files",
        way: Way::Down,
        connections: 4,
        beside: BESIDE,
        far: Far::WebDav,
        shape: |path| parts(path, 4),
        prepare: nothing,
        transfer: |site, job| rclone(site, &format!(":webdav:{DATA}"), &job.name),
        arrived: files,
    },
    Program {
        name: "rsync-pull",
        about: "rsync over ssh, 8 files",
        way: Way::Down,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("rsync");
            command.args(["-a", "-e", &site.ssh(), &format!("life:{}/", site.sent(DATA).display()), &job.name]);
            command
        },
        arrived: files,
    },
    Program {
        name: "restic-restore",
        about: "restic restore by its REST protocol",
        way: Way::Down,
        connections: 5,
        beside: BESIDE,
        far: Far::Restic,
        shape: |path| parts(path, 8),
        prepare: |site, job| {
            restic_init(site, job)?;
            let repository = site.far(&job.name).display().to_string();
            succeed(restic_backup(site, &repository, &[]).current_dir(site.far("")))
        },
        transfer: |site, job| {
            let mut command = restic(site, &format!("rest:{}", site.url(&format!("{}/", job.name))));
            command.args(["restore", "latest", "--target", &job.name]);
            command
        },
        arrived: |site, job| same(&site.sent(DATA), &site.arrived(&job.name).join(DATA)),
    },
    Program {
        name: "pg_basebackup",
        about: "pg_basebackup of a cluster, with its WAL",
        way: Way::Down,
        connections: 2,
        beside: BESIDE,
        far: Far::Postgres,
        // beside what a new cluster has
        shape: |_| Shape { count: 1, bytes: 100_000 },
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("pg_basebackup");
            let (address, port) = site.address();
            command.args(["-h", &address, "-p", &port, "-U", ROLE, "-c", "fast", "--manifest-checksums", "SHA256"]);
            command.args(["-D", &job.name]);
            command
        },
        // the files of the cluster go on changing: by the SHA-256 of each as it was sent
        arrived: |site, job| {
            Ok(Command::new(postgresql("pg_verifybackup")?).arg("-q").arg(site.arrived(&job.name)).status()?.success())
        },
    },
    Program {
        name: "git-clone",
        about: "git clone over ssh",
        way: Way::Down,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: |site, job| {
            let git = || git_in(site, &site.far(&job.name), &site.sent(DATA));
            committed(git)?;
            // the server is started without our options
            succeed(git().args(["config", "core.compression", "0"]))?;
            succeed(git().args(["config", "pack.window", "0"]))
        },
        transfer: |site, job| {
            let mut command = site.command("git");
            let from = format!("ssh://life{}", site.far(&job.name).display());
            command.args(["clone", "-q", "-b", "it", &from, &job.name]);
            command.env("GIT_SSH_COMMAND", site.ssh()).env("GIT_CONFIG_NOSYSTEM", "1");
            command
        },
        arrived: |site, job| {
            fs::remove_dir_all(site.arrived(&job.name).join(".git"))?;
            files(site, job)
        },
    },
    Program {
        name: "skopeo",
        about: "skopeo copy of a container image with 4 layers from a registry",
        way: Way::Down,
        connections: 4,
        beside: BESIDE,
        far: Far::Registry,
        shape: |path| parts(path, 4),
        prepare: |site, job| {
            let image = site.far(&job.name);
            succeed(Command::new("sh").arg(beside("image.sh")).arg(site.sent(DATA)).arg(&image))?;
            let mut push = skopeo(site, "--dest-tls-verify=false");
            push.arg(format!("dir:{}", image.display())).arg(image_url(site, job));
            succeed(site.servers().enter_command(&mut push))
        },
        transfer: |site, job| {
            let mut command = skopeo(site, "--src-tls-verify=false");
            command.arg(image_url(site, job)).arg(format!("dir:{}", site.arrived(&job.name).display()));
            command
        },
        arrived: |site, job| {
            let out = site.near(&format!("out-{}", job.name));
            fs::create_dir(&out)?;
            for layer in layers(&site.arrived(&job.name))? {
                succeed(Command::new("tar").arg("-xf").arg(layer).arg("-C").arg(&out))?;
            }
            same(&site.sent(DATA), &out)
        },
    },
];

fn apt_state(site: &Site, job: &Job) -> PathBuf {
    site.near(&format!("apt-{}", job.name))
}

/// apt-get that knows our repository alone, and no package of this machine's.
fn apt_get(site: &Site, job: &Job) -> Command {
    let mut command = site.command("apt-get");
    command.arg("-qq").env("APT_CONFIG", apt_state(site, job).join("apt.conf"));
    command
}

fn skopeo(site: &Site, option: &str) -> Command {
    let mut command = site.command("skopeo");
    command.args(["--insecure-policy", "copy", "-q", option]);
    command
}

fn image_url(site: &Site, job: &Job) -> String {
    let (address, port) = site.address();
    format!("docker://{address}:{port}/image:{}", job.name)
}

/// The layers of an image in a directory, which are named by their digests.
fn layers(image: &Path) -> Result<Vec<PathBuf>, Failure> {
    let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(image.join("manifest.json"))?)?;
    let layers = manifest["layers"].as_array().ok_or("the manifest has no layers")?;
    let digest = |layer: &serde_json::Value| Some(layer["digest"].as_str()?.strip_prefix("sha256:")?.to_owned());
    layers.iter().map(|layer| Ok(image.join(digest(layer).ok_or("a layer has no digest")?))).collect()
}
