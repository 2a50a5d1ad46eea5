// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! The commands of docs/cookbook.md, as they stand there, between two hosts with the page's names.

#[path = "cookbook/hosts.rs"]
mod hosts;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "cookbook/programs.rs"]
mod programs;

use std::{collections::BTreeSet, fs, time::Duration};

use hosts::{Site, has};
use lifecycle::{Running, finish, needs_kernel, until, within};
use programs::{ROLE, VERIFY, postgresql, syncthing};

const PAGE: &str = include_str!("../../../docs/cookbook.md");
const REGISTRY: &str = include_str!("cookbook/registry.py");

/// Each block that has a name, which a test below has, too.
const TRIED: [&str; 15] = [
    "restic",
    "borg",
    "rclone",
    "rclone-download",
    "rsync",
    "postgresql-base-backup",
    "postgresql-replication",
    "postgresql-wal",
    "syncthing",
    "git",
    "docker",
    "skopeo",
    "cron",
    "systemd",
    "prometheus",
];

/// Programs that several need, and the packages that they are in.
const SSHD: (&str, &str) = ("sshd", "openssh-server");
const RSYNC: (&str, &str) = ("rsync", "rsync");

/// The page's blocks of shell: their names and their text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let pieces = PAGE.split("\n```sh").skip(1);
    let parts = |piece: &'static str| {
        let (name, rest) = piece.split_once('\n').unwrap();
        (name.trim(), rest.split_once("\n```").expect("the block ends").0)
    };
    pieces.map(parts).collect()
}

fn block(name: &str) -> &'static str {
    assert!(TRIED.contains(&name));
    blocks().into_iter().find(|block| block.0 == name).unwrap_or_else(|| panic!("the page has no {name}")).1
}

#[test]
fn every_block_has_its_test() {
    assert_eq!(blocks().iter().map(|block| block.0).collect::<BTreeSet<_>>(), BTreeSet::from(TRIED));
    assert_eq!(blocks().len(), TRIED.len());
    let tests = include_str!("cookbook.rs");
    for name in TRIED {
        assert!(tests.contains(&format!("block(\"{name}\")")), "no test runs {name}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn restic_backup() {
    needs_kernel();
    if !has(&[("restic", "restic"), SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("restic");
    site.near.fill("/srv/data", 3, 1_500_000);
    site.near.run("RESTIC_PASSWORD=it restic init -q -r sftp:backup:/srv/restic");
    let ended = site.near.run(&format!("export RESTIC_PASSWORD=it; {}", block("restic")));
    assert!(ended.err.contains("lowtide: restic says that "), "{ended:?}");
    site.near.has_governed(4_500_000);
    site.far.run("RESTIC_PASSWORD=it restic -q -r /srv/restic restore latest --target /root/out");
    site.same("/srv/data", "/root/out/srv/data");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn borg_create() {
    needs_kernel();
    if !has(&[("borg", "borgbackup"), SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("borg");
    site.near.fill("/srv/data", 3, 1_500_000);
    site.near.run("borg init -e none ssh://backup/srv/borg");
    site.near.run(&format!("export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes; {}", block("borg")));
    site.near.has_governed(4_500_000);
    site.far.run(
        "export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes; mkdir /root/out; cd /root/out; \
         borg extract /srv/borg::$(borg list --short /srv/borg)",
    );
    site.same("/srv/data", "/root/out/srv/data");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn rclone_copy() {
    needs_kernel();
    if !has(&[("rclone", "rclone")]) {
        return;
    }
    let site = Site::new("rclone");
    site.near.run("mkdir -p /root/.config/rclone");
    let remote = "[remote]\ntype = webdav\nurl = http://backup:8080\nvendor = other\n";
    fs::write(site.near.at("/root/.config/rclone/rclone.conf"), remote).unwrap();
    let serve = format!("exec rclone --config '' serve webdav --addr {}:8080 /srv", site.link.b4());
    let _server = site.far.start(&serve);
    site.listens(site.link.b4(), 8080);
    site.near.fill("/srv", 3, 1_500_000);
    let ended = site.near.run(block("rclone"));
    assert!(ended.err.contains("lowtide: rclone says that ") && ended.err.contains("Copied (new)"), "{ended:?}");
    site.near.has_governed(4_500_000);
    site.same("/srv", "/srv/srv");

    site.near.run(block("rclone-download"));
    site.near.has_governed(4_500_000);
    site.same("/var/lib/copy", "/srv/srv");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn rsync_by_hand_by_cron_and_by_systemd() {
    needs_kernel();
    if !has(&[RSYNC, SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("rsync");
    let command = |name| match name {
        "cron" => by_cron(block("cron")),
        "systemd" => by_systemd(block("systemd")),
        _ => block("rsync").to_owned(),
    };
    for name in ["rsync", "cron", "systemd"] {
        // files that are not there yet
        site.near.fill(&format!("/srv/{name}"), 3, 1_500_000);
        let ended = site.near.run(&command(name));
        assert!(name == "cron" || ended.err.contains("before the deadline"), "{name}: {ended:?}");
        assert!(name != "cron" || (ended.out.clone() + &ended.err).is_empty(), "cron would send mail: {ended:?}");
        site.near.has_governed(4_500_000);
        site.same("/srv", "/srv");
    }
    let runs = site.near.history();
    assert_eq!(runs.len(), 3);
    // what cron's run sent is what systemd's expects: it has the same name
    assert_eq!((&runs[1]["name"], &runs[2]["size_bytes"]), (&"nightly".into(), &runs[1]["acknowledged_bytes"]));
}

/// What cron does with this table, in its environment.
fn by_cron(table: &str) -> String {
    let (path, line) = table.split_once('\n').unwrap();
    let command = line.splitn(7, ' ').nth(6).unwrap().trim_start();
    let (user, command) = command.split_once("  ").unwrap();
    assert_eq!((user, path), ("root", "PATH=/usr/local/bin:/usr/bin:/bin"));
    // /usr/local/bin is where make install puts it
    format!("exec env -i HOME=/root LOGNAME=root PATH=/mnt/bin:/usr/bin:/bin /bin/sh -c '{command}'")
}

/// What systemd does with this unit.
fn by_systemd(unit: &str) -> String {
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/lowtide ")).unwrap();
    format!("exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin /mnt/bin/lowtide {line}")
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn postgresql_sends_a_base_backup() {
    needs_kernel();
    if !has(&[("pg_ctlcluster", "postgresql")]) {
        return;
    }
    let site = Site::new("pgbase");
    let start = postgresql(&site.far, "");
    let _primary = site.far.start(&start);
    site.listens(site.link.b4(), 5432);
    site.far.run(ROLE);
    site.near.run("install -d -o postgres /var/lib/postgresql");
    site.near.run(block("postgresql-base-backup"));
    site.near.has_governed(20_000_000);
    site.near.run(VERIFY);
}

/// Once it governs.
fn attach(site: &Site, block: &str) -> Running {
    let running = site.near.start(&block.replace("192.0.2.2", &site.link.b4().to_string()));
    until("attached", || running.err().contains("attached to").then_some(()));
    running
}

fn detach(site: &Site, running: Running, name: &str) {
    site.near.run(&format!("sudo lowtide detach {name}"));
    let ended = running.end();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn postgresqls_replication_and_its_archive_are_attached_to() {
    needs_kernel();
    if !has(&[("pg_ctlcluster", "postgresql"), RSYNC, SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("pgrep");
    site.far.run("mkdir /srv/wal; install -d -o postgres /var/lib/postgresql");
    let archive = "wal_keep_size = 64MB\narchive_mode = on\narchive_command = 'rsync -a %p root@backup:/srv/wal/%f'";
    let start = postgresql(&site.near, archive);
    // as whom the server calls ssh
    site.near.run("cp -r /root/.ssh /var/lib/postgresql/; chown -R postgres: /var/lib/postgresql/.ssh");
    let unit = site.near.start_unit("postgresql@15-main.service", &start);
    site.listens(site.link.a4(), 5432);
    site.near.run(ROLE);

    let running = attach(&site, block("postgresql-replication"));
    site.far.run("sudo -u postgres pg_basebackup -h near -U replica -D /var/lib/postgresql/standby");
    detach(&site, running, "standby");
    site.near.has_governed(20_000_000);
    site.far.run(VERIFY);

    let running = attach(&site, block("postgresql-wal"));
    let switch = "psql -qAt -U postgres -h localhost -c 'create table if not exists t (x float)' \
                  -c 'insert into t select random() from generate_series(1, 5000)' -c 'select pg_walfile_name(pg_switch_wal())'";
    let files: Vec<_> = (0..4).map(|_| site.near.run(switch).out.trim().to_owned()).collect();
    for file in files {
        let arrived = site.far.at(&format!("/srv/wal/{file}"));
        within(Duration::from_secs(60), &file, || arrived.exists().then_some(()));
        site.same(&format!("/var/lib/postgresql/main/pg_wal/{file}"), &format!("/srv/wal/{file}"));
    }
    detach(&site, running, "wal");
    site.near.has_governed(3_000_000);
    drop(unit);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn syncthing_is_attached_to() {
    needs_kernel();
    if !has(&[("syncthing", "syncthing")]) {
        return;
    }
    let site = Site::new("sync");
    let start = syncthing(&site);
    site.near.fill("/srv/data", 3, 1_500_000);
    let unit = site.near.start_unit("syncthing@root.service", start);
    site.listens(site.link.a4(), 22000);
    let running = attach(&site, block("syncthing"));
    let _far = site.far.start(start);
    within(Duration::from_secs(90), "all files", || site.has_same("/srv/data", "/srv/data").then_some(()));
    detach(&site, running, "syncthing");
    site.near.has_governed(4_500_000);
    drop(unit);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn git_push_with_a_connection_of_its_own() {
    needs_kernel();
    if !has(&[("git", "git"), SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("git");
    site.near.run(
        "printf 'Host *\nControlMaster auto\nControlPersist 60\nControlPath /root/.ssh/%%C\n' >> /root/.ssh/config",
    );
    site.near.run(
        "set -e; git config --global user.name a; git config --global user.email a@b; git init -q /srv/repository; \
         cd /srv/repository; git remote add backup backup:/srv/repository.git",
    );
    site.far.run("git init -q --bare /srv/repository.git");
    let commit = |name: &str| {
        site.near.fill(&format!("/srv/repository/{name}"), 2, 1_500_000);
        site.near.run(&format!("cd /srv/repository; git add {name}; git commit -qm {name}"));
    };
    let arrived = || {
        let head = site.near.run("git -C /srv/repository rev-parse HEAD").out;
        assert_eq!(site.far.run("git -C /srv/repository.git for-each-ref --format='%(objectname)'").out, head);
    };
    // somebody has been there before
    site.near.run("ssh backup true 2>/dev/null");
    commit("a");
    site.near.run(block("git"));
    site.near.has_governed(3_000_000);
    arrived();
    // what the page warns of
    commit("b");
    site.near.run("sudo lowtide run -- git -C /srv/repository push -q backup HEAD");
    assert_eq!(site.near.history().last().unwrap()["outcome"], "not-governed");
    arrived();
    site.near.run("ssh -O exit backup");
}

/// A registry on the far host, which keeps its images in /srv there.
fn registry(site: &Site) -> Running {
    fs::write(site.far.at("/root/registry.py"), REGISTRY).unwrap();
    let server = site.far.start(&format!("exec /usr/bin/python3 /root/registry.py /srv {} 5000", site.link.b4()));
    site.listens(site.link.b4(), 5000);
    server
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn docker_push_by_the_daemon() {
    needs_kernel();
    if !has(&[("dockerd", "docker.io"), ("docker", "docker.io"), ("containerd", "containerd")]) {
        return;
    }
    let site = Site::new("docker");
    let _registry = registry(&site);
    // no containers, so no networks of theirs
    let unit = site.near.start_unit(
        "docker.service",
        "exec dockerd --storage-driver vfs --bridge none --iptables=false --ip6tables=false --insecure-registry registry:5000",
    );
    let answers = || finish(&mut site.near.command("docker version")).status.success().then_some(());
    within(Duration::from_secs(60), "the daemon", answers);
    site.near.fill("/srv/files", 3, 5_000_000);
    site.near.run("tar c -C /srv files | docker import - registry:5000/app");
    site.near.run(&block("docker").replace("192.0.2.2", &site.link.b4().to_string()));
    site.near.has_governed(5_000_000);
    // its layer is what was imported, and its manifest names it
    site.near.run("tar c -C /srv files | tar t | sort > /root/sent");
    site.far.run(
        "cd /srv; for blob in sha256:*; do gzip -dc $blob 2>/dev/null | tar t 2>/dev/null; done | sort > /root/sent",
    );
    site.same("/root/sent", "/root/sent");
    drop(unit);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn skopeo_copy() {
    needs_kernel();
    if !has(&[("skopeo", "skopeo")]) {
        return;
    }
    let site = Site::new("skopeo");
    let _registry = registry(&site);
    site.near.run("mkdir -p /root/.config/containers /srv/image");
    let anything = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;
    fs::write(site.near.at("/root/.config/containers/policy.json"), anything).unwrap();
    // an image of one layer
    site.near.fill("/srv/files", 3, 1_500_000);
    site.near.run(
        r#"set -e; cd /srv/image
        digest() { sha256sum "$1" | cut -d' ' -f1; }
        keep() { mv "$1" "$(digest "$1")"; }
        tar cf layer.tar -C /srv files; id=$(digest layer.tar); gzip layer.tar
        echo "{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:$id\"]}}" > config
        type=application/vnd.docker
        part() { echo "{\"mediaType\":\"$type.$2\",\"size\":$(stat -c %s "$1"),\"digest\":\"sha256:$(digest "$1")\"}"; }
        echo "{\"schemaVersion\":2,\"mediaType\":\"$type.distribution.manifest.v2+json\",
               \"config\":$(part config container.image.v1+json),\"layers\":[$(part layer.tar.gz image.rootfs.diff.tar.gzip)]}" > manifest.json
        keep config; keep layer.tar.gz; echo "Directory Transport Version: 1.1" > version"#,
    );
    site.near.run(block("skopeo"));
    site.near.has_governed(4_500_000);
    site.near.run("cd /srv/image; rm version; sha256sum * | cut -d' ' -f1 | sort > /root/sent");
    site.far.run("cd /srv; sha256sum sha256:* | cut -d' ' -f1 | sort > /root/sent");
    site.same("/root/sent", "/root/sent");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn metrics_for_prometheus() {
    needs_kernel();
    let site = Site::new("prom");
    let run = site.near.start("lowtide run --name nightly --cc reno sleep 60");
    until("the transfer", || finish(&mut site.near.command("lowtide status")).out.contains("nightly").then_some(()));
    site.near.run("mkdir -p /var/lib/prometheus/node-exporter");
    site.near.run(block("prometheus"));
    let metrics = fs::read_to_string(site.near.at("/var/lib/prometheus/node-exporter/lowtide.prom")).unwrap();
    assert!(metrics.contains("\nlowtide_acknowledged_bytes_total{name=\"nightly\"} 0\n"), "{metrics}");
    drop(run);
}
