#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process: runs /job/command, hands out its status and /job/result through the virtio port, ends the
# machine. Where the image has a whole Debian, systemd takes its place, and has it do that as a service of its own
# (scripts/debian-image.sh).
bb=/bin/busybox
if [ -e /root.tar ]; then
	$bb mount -t tmpfs -o size=75% tmpfs /new && $bb tar -x -f /root.tar -C /new && $bb rm /root.tar &&
		$bb cp -a /init /job /new/ && exec $bb switch_root /new /usr/lib/systemd/systemd
	exit 1 # the kernel says so, and the machine stops
fi
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
if [ "$1" != job ]; then
	$bb --install -s /bin
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs devtmpfs /dev
	mount -t tmpfs tmpfs /run
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t bpf bpf /sys/fs/bpf
	echo /bin/modprobe >/proc/sys/kernel/modprobe # modules load when something asks for them
	/bin/ip link set lo up
fi

# "MODULE PARAMETER=VALUE …" on each line
while read -r line; do
	# shellcheck disable=SC2086 # words
	modprobe $line || echo "guest: modprobe $line failed"
done </job/modules

cd /job || exit
# by its path: a shell of busybox's, which it would start itself, runs its own programs in place of Debian's
/bin/sh /job/command
status=$?

modprobe virtio_pci
modprobe virtio_console
tries=0
while [ ! -e /dev/vport0p1 ] && [ $tries -lt 100 ]; do
	tries=$((tries + 1))
	$bb usleep 10000
done
touch /job/result
read -r uptime _ </proc/uptime
{
	echo "lowtide-guest $status $uptime $(stat -c %s /job/result)"
	cat /job/result
} >/dev/vport0p1
poweroff -f
