#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process: runs /job/command, hands out its status and /job/result through the virtio port, ends the
# machine.
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
echo /bin/modprobe >/proc/sys/kernel/modprobe # modules load when something asks for them
/bin/ip link set lo up

# "MODULE PARAMETER=VALUE …" on each line
while read -r line; do
	# shellcheck disable=SC2086 # words
	modprobe $line || echo "guest: modprobe $line failed"
done </job/modules

cd /job || exit
sh /job/command
status=$?

modprobe virtio_pci
modprobe virtio_console
tries=0
while [ ! -e /dev/vport0p1 ] && [ $tries -lt 100 ]; do
	tries=$((tries + 1))
	usleep 10000
done
touch /job/result
read -r uptime _ </proc/uptime
{
	echo "lowtide-guest $status $uptime $(stat -c %s /job/result)"
	cat /job/result
} >/dev/vport0p1
poweroff -f
