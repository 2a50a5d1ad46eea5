// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! A base backup out of a PostgreSQL that serves clients over the same link, with `lowtide attach` on the backup's
//! connections alone: measured, and printed. `cargo test -p lowtide --test database -- --include-ignored
//! --show-output`, with nothing else running.

#[path = "cookbook/hosts.rs"]
mod hosts;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "cookbook/programs.rs"]
mod programs;

use std::time::Duration;

use hosts::{Site, has};
use lifecycle::{Running, Socket, needs_kernel, sockets, until};
use programs::{ROLE, VERIFY, postgresql};

/// What the clients keep beside the governed backup, of what they have alone.
const KEPT: f64 = 0.95;
const CLIENTS: usize = 8;
const BACKUP_LIMIT: Duration = Duration::from_secs(200);

/// Clients on the far host, for so long.
fn clients(site: &Site, seconds: u32) -> Running {
    let server = site.link.a6().expect("the link has IPv6");
    let run = format!("exec pgbench -h {server} -U postgres -S -n -c {CLIENTS} -j 2 -T {seconds} bench");
    site.far.start(&run)
}

/// Their transactions per second.
fn rate(clients: Running) -> f64 {
    let ended = clients.end_within(Duration::from_secs(60));
    let tps = ended.out.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{ended:?}"))
}

/// A base backup on the far host, by another protocol of the network than the clients': the server cannot tell them
/// by its port.
fn backup(site: &Site) -> Running {
    let backup = site.far.start(
        "rm -rf /var/lib/postgresql/standby; \
         exec sudo -u postgres pg_basebackup -h near -U replica -c fast -D /var/lib/postgresql/standby",
    );
    until("the backup's connections", || (of_backup(site).len() == 2).then_some(()));
    backup
}

/// The laws of its connections, and those of the clients'.
fn laws(site: &Site) -> (Vec<String>, Vec<String>) {
    let all = sockets(site.link.a()).into_iter().filter(|socket| socket.local_port == 5432);
    let (backup, clients): (Vec<_>, Vec<_>) = all.partition(|socket| !socket.text.contains('['));
    let laws = |sockets: Vec<Socket>| sockets.iter().map(|socket| socket.law().to_owned()).collect();
    (laws(backup), laws(clients))
}

fn of_backup(site: &Site) -> Vec<String> {
    laws(site).0
}

/// Attached by the server's process, to what goes to the standby by IPv4.
fn attach(site: &Site) -> Running {
    let standby = site.link.b4();
    let attached = site.near.start(&format!(
        "exec lowtide attach --pid $(head -1 /var/lib/postgresql/main/postmaster.pid) --port 5432 --to {standby} --name standby"
    ));
    until("attached", || attached.err().contains("attached to").then_some(()));
    attached
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn clients_keep_their_rate_beside_a_base_backup_that_is_attached_to() {
    needs_kernel();
    if !has(&[("pg_ctlcluster", "postgresql")]) {
        return;
    }
    let site = Site::new("clients");
    site.far.run("install -d -o postgres /var/lib/postgresql");
    let start = postgresql(&site.near, "fsync = off");
    site.near.run("echo 'host all all all trust' >> /var/lib/postgresql/main/pg_hba.conf");
    let _unit = site.near.start_unit("postgresql@15-main.service", &start);
    site.listens(site.link.a4(), 5432);
    site.near.run(ROLE);
    site.near.run(
        "createdb -h localhost -U postgres bench && pgbench -i -q -s 10 -h localhost -U postgres bench 2>/dev/null",
    );

    let alone = rate(clients(&site, 10));
    let plain = backup(&site);
    let beside_plain = rate(clients(&site, 10));
    assert!(plain.end_within(BACKUP_LIMIT).status.success());

    // a busy machine's clients may have less by themselves
    let mut kept = Vec::new();
    for _ in 0..3 {
        let backup = backup(&site);
        let attached = attach(&site);
        let clients = clients(&site, 15);
        until("all of them", || {
            let (backup, clients) = laws(&site);
            assert!(backup.iter().all(|law| law.starts_with("lt_tide")), "{backup:?}");
            assert!(clients.iter().all(|law| !law.starts_with("lt_")), "{clients:?}");
            (clients.len() >= CLIENTS).then_some(())
        });
        let beside = rate(clients);
        assert!(!of_backup(&site).is_empty(), "the backup lasts as long");
        assert!(backup.end_within(BACKUP_LIMIT).status.success());
        site.far.run(VERIFY);
        site.near.run("lowtide detach standby");
        assert!(attached.end().status.success());
        site.near.has_governed(100_000_000);
        println!(
            "alone {alone:.0} transactions a second, beside the backup as it is {beside_plain:.0}, governed {beside:.0}"
        );
        kept.push(beside / alone);
        if beside >= KEPT * alone {
            return;
        }
    }
    panic!("clients kept {kept:.3?} of their rate alone beside the governed backup");
}
