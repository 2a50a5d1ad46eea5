# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by /bin/sh in a Debian with systemd, as a service of it: the package's life there. Writes a line for each thing
# that was looked at, its name and what was found, to `result`; tests/debian.rs says what it has to be.
exec 2>&1
export DEBIAN_FRONTEND=noninteractive SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0
say() { # NAME VALUE…
	echo "$*" | tee -a result
}
# Where the package could leave something. What dpkg, apt, Podman and systemd write for themselves is not among it.
THEIRS='/(job|var/(log|cache|lib/(apt|containers|systemd|dpkg/status.*)))'
everything() {
	find / -xdev -regextype egrep -regex "$THEIRS" -prune -o -print
	find /run /sys/fs/bpf /sys/fs/cgroup -iname '*lowtide*' -o -name 'lt_*'
	cat /etc/passwd /etc/group /proc/sys/net/ipv4/tcp_available_congestion_control
	bpftool prog show | grep -o 'name [^ ]*' | grep -v 'name sd_' # systemd's own
	bpftool struct_ops show
	systemctl list-unit-files --no-legend 'lowtide*'
	systemctl list-units --all --no-legend '*lowtide*'
}

# This host, a router, and the far host: 20 Mbit/s with a buffer of one BDP, 40 ms. The router is a host of its own
# because TCP keeps queues short on its own host.
for host in router far; do ip netns add $host && ip -n $host link set lo up; done
ip link add near type veth peer name left netns router
ip link add right netns router type veth peer name far netns far
ip address add 10.9.1.1/24 dev near && ip -n router address add 10.9.1.2/24 dev left
ip -n router address add 10.9.2.2/24 dev right && ip -n far address add 10.9.2.1/24 dev far
ip link set near up && ip -n router link set left up && ip -n router link set right up && ip -n far link set far up
ip link set near gso_max_segs 1 # packets as they would be on a wire
ip netns exec router sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward"
ip route add 10.9.2.0/24 via 10.9.1.2 && ip -n far route add default via 10.9.2.2
tc -n router qdisc add dev right root tbf rate 20mbit burst 3028 limit 100000
tc -n far qdisc add dev far root netem delay 40ms limit 10000

systemctl is-system-running --wait >/dev/null
say kernel "$(uname -r)"
say first "$(cat /proc/1/comm) $(systemctl --version | head -1)"
say failed "$(systemctl list-units --failed --no-legend | wc -l)"
say libraries "$(dpkg-deb -f lowtide.deb Depends)"

everything | sort >before
apt-get install -y --no-install-recommends ./lowtide.deb >said || cat said
say installed "$(dpkg-query -W -f '${Status}' lowtide), $(lowtide --version)"
lowtide doctor >said
say doctor $?

# Receivers, and what is sent to them.
for port in 9000 9001; do ip netns exec far lowtide traffic sink --listen 10.9.2.1:$port & done
mkdir -p /run/systemd/system /srv/data received && chown backup received
printf '[received]\npath = /job/received\nread only = no\nuse chroot = no\nuid = backup\ngid = backup\n' >rsyncd.conf
ip netns exec far rsync --daemon --no-detach --config=rsyncd.conf --address=10.9.2.1 &
head -c 10000000 /dev/urandom >/srv/data/file
cat >/run/systemd/system/upload.service <<-UNIT
	[Service]
	ExecStart=/usr/bin/lowtide traffic send --to 10.9.2.1:9000
UNIT
cat >/run/systemd/system/foreground.service <<-UNIT
	[Service]
	ExecStart=/usr/bin/lowtide traffic send --to 10.9.2.1:9001 --cc cubic
UNIT
systemctl daemon-reload

acknowledged() { # PORT: bytes that its connection has had acknowledged
	ss -tinH dst "10.9.2.1:$1" | grep -o 'bytes_acked:[0-9]*' | cut -d: -f2
}
rate() { # PORT SECONDS: kbit/s
	begin=$(acknowledged "$1")
	sleep "$2"
	echo $((($(acknowledged "$1") - begin) / 125 / $2))
}
status() { # NAME
	lowtide status "$1" | paste -sd ' '
}
of() { # UNIT PROPERTY…
	unit=$1
	shift
	for property; do systemctl show -P "$property" "$unit"; done | paste -sd ' '
}
law() { # PORT
	ss -tinH dst "10.9.2.1:$1" | tail -n +2 | awk '{ print $1 }'
}

# The foreground by itself, beside the service as it is, beside the governed service, and once that is let go.
systemctl start foreground && sleep 5
say alone "$(rate 9001 30)"
systemctl start upload && sleep 5
say ungoverned "$(rate 9001 20)"
say law_before "$(law 9000)"
systemctl start lowtide-attach@upload && sleep 5
say law_attached "$(law 9000)"
begin=$(acknowledged 9000)
say attached "$(rate 9001 40)"
say upload_sent $(($(acknowledged 9000) - begin))
say status "$(status upload)"
lowtide detach upload && sleep 1
say law_detached "$(law 9000)"
say unit_detached "$(of lowtide-attach@upload ActiveState Result NRestarts)"
# CUBIC begins with the small window that the law has left
sleep 20
say detached "$(rate 9001 20)"
systemctl stop upload

# The example of a nightly backup as its head says, with another command and another night; the foreground goes on.
cp /usr/share/doc/lowtide/examples/nightly-backup.* /etc/systemd/system/
mkdir -p /run/systemd/system/nightly-backup.service.d /run/systemd/system/nightly-backup.timer.d
other='--size-of /srv/data -- rsync -a /srv/data/ rsync://10.9.2.1/received/'
sed -n "s|^ExecStart=\(.*\) --size last --size-of.*|[Service]\nExecStart=\nExecStart=\1 $other|p" \
	/etc/systemd/system/nightly-backup.service >/run/systemd/system/nightly-backup.service.d/try.conf
printf '[Timer]\nOnCalendar=\nOnCalendar=05:59:15\nAccuracySec=1\n' >/run/systemd/system/nightly-backup.timer.d/try.conf
date -s '2026-01-02 05:59:10' >said
systemctl daemon-reload
systemctl enable -q --now nightly-backup.timer
sleep 20
say nightly_running "$(systemctl is-active nightly-backup.service) $(status nightly)"
sleep 35
say nightly_unit "$(of nightly-backup.service ActiveState Result)"
say nightly "$(lowtide history nightly --json | grep -o '"outcome": *"[a-z-]*"' | cut -d'"' -f4)"
say received "$(cmp /srv/data/file received/file && echo all)"
systemctl disable -q --now nightly-backup.timer
rm -r /etc/systemd/system/nightly-backup.* /run/systemd/system/nightly-backup.*
systemctl daemon-reload
systemctl stop foreground

# A container on the host's network, by Podman and crun, as from a shell: in a unit its monitor would have no group of
# its own.
mkdir -p /srv/container/bin && cp /bin/busybox /srv/container/bin/
env -u INVOCATION_ID podman run --detach --name sender --network host --rootfs /srv/container \
	/bin/busybox sh -c 'busybox nc 10.9.2.1 9000 </dev/zero'
sleep 2
say container_groups "$(cd /sys/fs/cgroup/machine.slice && ls -d ./*.scope | paste -sd ' ')"
say container_law_before "$(law 9000)"
lowtide attach --container sender --progress line &
sleep 5
say container_law_attached "$(law 9000)"
lowtide detach sender && wait $!
say container_law_detached "$(law 9000)"
podman rm --force --time 0 sender

# Metrics, and a unit that is governed whenever it runs; both are on when the package goes.
mkdir -p /var/lib/prometheus/node-exporter
systemctl enable -q lowtide-attach@upload
systemctl enable -q --now lowtide-metrics.timer
systemctl start upload && sleep 17
say law_enabled "$(law 9000)"
say metrics "$(grep -c '^lowtide_.*name="upload"' /var/lib/prometheus/node-exporter/lowtide.prom)"
systemctl stop upload && sleep 2
say unit_stopped "$(of lowtide-attach@upload ActiveState Result)"
systemctl start upload && sleep 3
apt-get purge -y lowtide >said || cat said
sleep 2
say law_purged "$(law 9000)"
say service_purged "$(systemctl is-active upload)"
systemctl stop upload
rmdir /var/lib/prometheus/node-exporter /var/lib/prometheus
rm -r /srv/data /srv/container
everything | sort >after
say left "$(diff before after | paste -sd ' ')"
say failed_after "$(systemctl list-units --failed --no-legend | paste -sd ' ')"
journalctl --no-pager -u 'lowtide*' -u nightly-backup -o cat | tail -60
