#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# debian-image.sh DIRECTORY   makes the guest of `make try-deb`: a Debian with systemd as its first process
#
# Installed on this machine, if missing:   qemu-system-x86, mmdebstrap, and uidmap unless it is root that calls
# Downloaded by mmdebstrap:                that Debian's packages, its kernel among them
# Written to DIRECTORY/guest:              kernel, initramfs.cpio, about (what they were made of); 338 MB
#
# No root and no mount is needed: the file system goes into the initramfs as a tar file, and is unpacked in memory by
# the guest's first process (crates/lowtide-guest/src/init.sh), which then becomes systemd.
# What is there is not made again, until this file changes; GUEST_SUITE names another release than trixie.
set -eu

# To be raised when an image of before does not serve any more; `Image::find` in crates/lowtide-guest checks it.
FORMAT=2
# What the package needs, and what tries it; busybox is the first process's, and that of a container.
PACKAGES="systemd systemd-sysv dbus udev kmod busybox-static iproute2 libelf1 zlib1g bpftool rsync podman crun"

fail() {
	echo "debian-image.sh: $*" >&2
	exit 1
}

[ $# = 1 ] || fail "usage: debian-image.sh DIRECTORY (target/lab/debian)"
suite=${GUEST_SUITE:-trixie}
directory=$1/guest
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
	fail "the guest is made of Debian packages for amd64, and this is no such system"
# without root mmdebstrap works in a user namespace
"$(dirname "$0")/need.sh" packages "qemu-system-x86 mmdebstrap $([ "$(id -u)" = 0 ] || echo uidmap)"

about="format $FORMAT
debian $suite, by script $(cksum <"$0" | cut -d' ' -f1)"
if [ "$(cat "$directory/about" 2>/dev/null)" = "$about" ]; then # it is written last
	echo "the Debian in $directory is there already; it is made anew once that directory is removed"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"

# In the new Debian. Its kernel is unpacked, not installed: it needs no initramfs and no boot loader.
cat >"$work/customize" <<'INSIDE'
set -eu
cd /tmp
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -1)
apt-get download -q -o APT::Sandbox::User=root "$kernel"
dpkg-deb -x linux-image-*.deb /tmp/kernel
mv kernel/boot/vmlinuz-* /boot/vmlinuz
mkdir -p /usr/lib/modules
mv kernel/lib/modules/* /usr/lib/modules/ 2>/dev/null || mv kernel/usr/lib/modules/* /usr/lib/modules/
rm -r linux-image-*.deb kernel
depmod "$(ls /usr/lib/modules)"
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/*

# The guest's command is a service like any other. Nobody logs in, and there is no network to wait for.
cat >/etc/systemd/system/job.service <<UNIT
[Unit]
Description=What the guest is booted for

[Service]
ExecStart=/init job
StandardOutput=file:/dev/ttyS0

[Install]
WantedBy=multi-user.target
UNIT
systemctl enable -q job.service
systemctl mask -q getty.target systemd-networkd-wait-online.service
INSIDE
mmdebstrap --quiet --variant=minbase --include="$(echo "$PACKAGES" | tr ' ' ,)" \
	--customize-hook="upload $work/customize /customize" --customize-hook='chroot "$1" sh /customize' \
	--customize-hook="download /boot/vmlinuz $work/kernel" --customize-hook='rm "$1/customize" "$1/boot/vmlinuz"' \
	"$suite" "$work/root.tar" || fail "mmdebstrap failed; is the mirror within reach?"

mkdir -p "$work/initramfs/bin" "$directory"
tar -x -f "$work/root.tar" -C "$work" --no-same-owner ./usr/bin/busybox
mv "$work/usr/bin/busybox" "$work/initramfs/bin/"
mv "$work/root.tar" "$work/initramfs/"
for place in proc sys dev run tmp etc new; do mkdir "$work/initramfs/$place"; done
rm -f "$directory/about"
(cd "$work/initramfs" && find . | LC_ALL=C sort | bin/busybox cpio -o -H newc) >"$directory/initramfs.cpio"
cp "$work/kernel" "$directory/kernel"
echo "$about" >"$directory/about"
echo "the Debian in $directory: $(du -sh "$directory" | cut -f1)"
