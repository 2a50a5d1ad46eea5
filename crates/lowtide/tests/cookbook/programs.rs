// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers of the cookbook's hosts, as they would be set up there.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;

use super::hosts::{Host, Site};

/// A primary on this host, as Debian would have it; what else its configuration says. Gives what starts it.
pub(crate) fn postgresql(host: &Host, settings: &str) -> String {
    host.run(&format!(
        "set -e; install -d -o postgres /var/lib/postgresql /run/postgresql; cd /var/lib/postgresql; \
         bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); ln -s $bin /root/bin; \
         sudo -u postgres $bin/initdb -D main --auth trust --wal-segsize 1 >/dev/null; \
         echo \"listen_addresses = '*'\ncheckpoint_timeout = 30s\n{settings}\" >> main/postgresql.conf; \
         echo 'host replication all all trust' >> main/pg_hba.conf"
    ));
    "cd /var/lib/postgresql; exec sudo -u postgres $(readlink /root/bin)/postgres -D main".to_owned()
}

/// What a standby connects as.
pub(crate) const ROLE: &str = "psql -q -U postgres -h localhost -c 'create role replica replication login'";
/// Checks a base backup.
pub(crate) const VERIFY: &str =
    "sudo -u postgres $(ls -d /usr/lib/postgresql/*/bin | tail -1)/pg_verifybackup -q /var/lib/postgresql/standby";

/// As `syncthing generate` leaves it, but for what looks for others by itself, and QUIC.
fn configuration(devices: &[(String, String)]) -> String {
    let entry = |(id, address): &(String, String)| format!("<device id=\"{id}\"><address>{address}</address></device>");
    let member = |(id, _): &(String, String)| format!("<device id=\"{id}\"></device>");
    let all = |form: &dyn Fn(&(String, String)) -> String| devices.iter().map(form).collect::<String>();
    format!(
        "<configuration version=\"35\"><folder id=\"srv\" path=\"/srv\" type=\"sendreceive\" fsWatcherEnabled=\"false\">{}</folder>{}\
         <gui enabled=\"false\"></gui><options><listenAddress>tcp://0.0.0.0:22000</listenAddress>\
         <globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>\
         <relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><urAccepted>-1</urAccepted>\
         <crashReportingEnabled>false</crashReportingEnabled></options></configuration>",
        all(&member),
        all(&entry)
    )
}

/// Two hosts that share /srv, each with its identity. Gives what starts it on either.
pub(crate) fn syncthing(site: &Site) -> &'static str {
    let mut devices = Vec::new();
    for (host, address) in [(&site.near, site.link.a4()), (&site.far, site.link.b4())] {
        host.run("mkdir -p /root/st /srv/.stfolder; syncthing generate --home=/root/st >/dev/null 2>&1");
        let id = host.run("syncthing --home=/root/st --device-id").out.trim().to_owned();
        devices.push((id, format!("tcp://{address}:22000")));
    }
    for host in [&site.near, &site.far] {
        fs::write(host.at("/root/st/config.xml"), configuration(&devices)).unwrap();
    }
    "exec syncthing serve --home=/root/st --no-browser --no-restart"
}
