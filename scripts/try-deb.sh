#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# try-deb.sh FILE.deb   installs the package into a root of its own, looks at what is there, and purges it. Root;
# nothing else on this machine changes.
set -eu

package=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/log" "$root/etc/systemd/system/timers.target.wants"
: >"$root/var/lib/dpkg/status"
# what it depends on is not in this root; its scripts run here, and heed DPKG_ROOT
dpkg_() {
	dpkg --root="$root" --log=/dev/null --force-depends --force-script-chrootless "$@" >"$root/said" 2>&1 || { cat "$root/said" >&2; exit 1; }
}

dpkg_ --install "$package"
missing=
for file in usr/bin/lowtide usr/share/man/man1/lowtide.1.gz usr/share/man/man1/lowtide-run.1.gz usr/share/man/man1/lowtide-attach.1.gz \
	usr/share/bash-completion/completions/lowtide usr/share/zsh/vendor-completions/_lowtide usr/share/fish/vendor_completions.d/lowtide.fish \
	usr/lib/systemd/system/lowtide-attach@.service usr/lib/systemd/system/lowtide-metrics.service usr/lib/systemd/system/lowtide-metrics.timer \
	usr/share/doc/lowtide/copyright usr/share/doc/lowtide/LICENSE-MIT usr/share/doc/lowtide/examples/nightly-backup.service usr/share/doc/lowtide/examples/grafana-dashboard.json; do
	[ -f "$root/$file" ] || missing="$missing $file"
done
[ -z "$missing" ] || { echo "try-deb.sh: the package lacks$missing" >&2; exit 1; }
version=$("$root/usr/bin/lowtide" --version)
! grep -rn 'ExecStart=/usr/local' "$root/usr/lib/systemd/system" || { echo "try-deb.sh: a unit calls what the package does not install" >&2; exit 1; }
gzip -dc "$root/usr/share/man/man1/lowtide-run.1.gz" | grep -q deadline
grep -q '^License: GPL-2$' "$root/usr/share/doc/lowtide/copyright" || { echo "try-deb.sh: the package's copyright file is not packaging/deb/copyright" >&2; exit 1; }

# as if it had been used
mkdir -p "$root/var/lib/lowtide" "$root/run/lowtide" "$root/var/lib/prometheus/node-exporter"
: >"$root/var/lib/lowtide/history.json"
: >"$root/var/lib/prometheus/node-exporter/lowtide.prom"
ln -s /usr/lib/systemd/system/lowtide-metrics.timer "$root/etc/systemd/system/timers.target.wants/"
dpkg_ --purge lowtide
left=$(cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./said \) -prune -o ! -type d -print)
[ -z "$left" ] || { echo "try-deb.sh: purged, and these are left: $left" >&2; exit 1; }
for directory in var/lib/lowtide run/lowtide etc/systemd/system/timers.target.wants; do
	[ ! -e "$root/$directory" ] || { echo "try-deb.sh: purged, and /$directory is left" >&2; exit 1; }
done
echo "$package: $version is installed, and purged without a trace"
