#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# guest-image.sh DIRECTORY   makes the guest of `lowtide lab run --on guest`: a Debian kernel and an initramfs with its
# modules
#
# Installed on this machine, if missing:   qemu-system-x86, iproute2
# Downloaded and unpacked, not installed:  the package that linux-image-amd64 depends on (70 MB), busybox-static
# Written to DIRECTORY/guest:              kernel, initramfs.cpio, about (what they were made of)
#
# The guest takes its first process, lowtide and iproute2 from lowtide and this machine when it starts, so one image
# serves every build. Where the image is already made of the newest packages that apt knows, nothing is done.
# GUEST_KERNEL names another kernel package (linux-image-rt-amd64; linux-image-6.12.9-amd64, from backports), or
# several, of which the first that apt knows is taken.
set -eu

# To be raised when an image of before does not serve any more; `Image::find` in crates/lowtide-guest checks it.
FORMAT=2

# Queue disciplines, the ways to them, and the way results go out.
NEEDED="veth ifb tun sch_tbf sch_netem sch_codel sch_fq_codel sch_pie sch_cake sch_fq sch_htb act_mirred sch_ingress cls_u32 \
	tcp_cdg tcp_lp tcp_vegas tcp_nv tcp_dctcp tcp_bbr virtio_pci virtio_console"
# Taken along where a kernel has them.
WELCOME="sch_dualpi2 sch_fq_pie sch_red sch_prio tcp_westwood tcp_htcp tcp_illinois tcp_yeah tcp_hybla tcp_veno tcp_scalable tcp_bic tcp_prague smc"

fail() {
	echo "guest-image.sh: $*" >&2
	exit 1
}

here=$(dirname "$0")
[ $# = 1 ] || fail "usage: guest-image.sh DIRECTORY (of the lab's cache: target/lab)"
directory=$1/guest
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
	fail "the guest is made of Debian packages for amd64, and this is no such system"
"$here/need.sh" packages "qemu-system-x86 iproute2"

# The newest version that apt offers, as PACKAGE=VERSION.
candidate() {
	apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Version: //p' | head -1 | sed "s/^/$1=/"
}

# What a package like linux-image-amd64 stands for at present; another one stands for itself.
kernel_package() {
	apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Depends: \(.*, *\)\?\(linux-image-[^ ,]*\).*/\2/p' | head -1 | grep . || echo "$1"
}

# Since Debian 14 the package of a kernel is empty, and depends on these.
parts() {
	for part in $(apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^\(Pre-\)\?Depends: //p' | tr ',' '\n' |
		sed -n 's/^ *\(linux-\(base\|binary\|modules\)-[^ (]*\).*/\1/p'); do
		candidate "$part"
	done
}

choose() {
	for name in ${GUEST_KERNEL:-linux-image-amd64}; do
		kernel=$(candidate "$(kernel_package "$name")")
		[ -z "$kernel" ] || break
	done
	busybox=$(candidate busybox-static)
	[ -n "$kernel" ] && [ -n "$busybox" ]
}

choose || { apt-get update -q && choose; } || fail "apt knows no package ${GUEST_KERNEL:-linux-image-amd64} or no busybox-static; see /etc/apt/sources.list"

about="format $FORMAT
kernel $kernel
busybox $busybox"
if [ -f "$directory/kernel" ] && [ -f "$directory/initramfs.cpio" ] && [ "$(cat "$directory/about" 2>/dev/null)" = "$about" ]; then
	echo "the guest in $directory is made of the newest packages"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"

# As root apt would hand the download to a user that may not write here.
download() {
	(cd "$work" && apt-get download -q -o APT::Sandbox::User=root "$kernel" $(parts "${kernel%%=*}") "$busybox")
}
download || { apt-get update -q && choose && download; } || fail "$kernel and $busybox could not be downloaded; is the mirror within reach?"
about="format $FORMAT
kernel $kernel
busybox $busybox"

unpacked=$work/unpacked root=$work/root
mkdir -p "$unpacked" "$root/bin"
for package in "$work"/*.deb; do
	dpkg-deb --fsys-tarfile "$package" >"$work/package.tar" || fail "$package cannot be unpacked"
	tar -x -C "$unpacked" --exclude='./usr/share/*' -f "$work/package.tar"
done
bb=$(find "$unpacked/bin" "$unpacked/usr/bin" -name busybox 2>/dev/null | head -1)
[ -x "$bb" ] || fail "$busybox holds no busybox"
cp "$bb" "$root/bin/busybox"
[ -d "$unpacked/lib/modules" ] || mv "$unpacked/usr/lib" "$unpacked/lib"
vmlinuz=$(find "$unpacked/boot" "$unpacked/lib/modules" -name 'vmlinuz*' 2>/dev/null | head -1)
[ -n "$vmlinuz" ] || fail "$kernel holds no kernel"
release=$(cd "$unpacked/lib/modules" && echo *)
modules=lib/modules/$release
[ -d "$unpacked/$modules" ] || fail "$kernel holds no modules of $release"

# Newer kernels come with compressed modules, which busybox need not know.
find "$unpacked/$modules" -name '*.ko.xz' -exec xz -d {} +
"$bb" depmod -b "$unpacked" "$release"

mkdir -p "$root/$modules"
take() { # a module and those that it needs; nothing if it is built in
	line=$(grep -E "(^|/)$(echo "$1" | sed 's/[-_]/[-_]/g')\.ko:" "$unpacked/$modules/modules.dep") || {
		grep -qE "/$(echo "$1" | sed 's/[-_]/[-_]/g')\.ko" "$unpacked/$modules/modules.builtin"
		return
	}
	for file in $(echo "$line" | tr -d :); do
		mkdir -p "$root/$modules/$(dirname "$file")"
		cp "$unpacked/$modules/$file" "$root/$modules/$file"
	done
}
for module in $NEEDED; do
	take "$module" || fail "$kernel has no module $module"
done
for module in $WELCOME; do
	take "$module" || true
done
cp "$unpacked/$modules/modules.builtin" "$unpacked/$modules/modules.order" "$root/$modules/"
"$bb" depmod -b "$root" "$release"

chmod 755 "$root/bin/busybox"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/etc" "$root/job" "$root/usr/sbin"

mkdir -p "$directory"
rm -f "$directory/about"
(cd "$root" && find . | LC_ALL=C sort | "$bb" cpio -o -H newc) >"$directory/initramfs.cpio"
# Unpacking the kernel is half of the time that a guest takes to boot, so that is done here, once; QEMU boots either.
bytes() { # OFFSET: the number of four bytes there
	od -An -tu4 -j "$1" -N 4 "$vmlinuz" | tr -d ' '
}
sectors=$(od -An -tu1 -j 497 -N 1 "$vmlinuz" | tr -d ' ')
begin=$(((sectors + 1) * 512 + $(bytes 584)))
# the last four bytes of the payload are its length unpacked
tail -c +$((begin + 1)) "$vmlinuz" | head -c $(($(bytes 588) - 4)) >"$work/payload"
case $(od -An -tx1 -N 4 "$work/payload" | tr -d ' ') in
fd377a58) xz -dc "$work/payload" >"$work/kernel" ;;
28b52ffd) zstd -dcq "$work/payload" >"$work/kernel" 2>/dev/null ;;
1f8b*) gzip -dc "$work/payload" >"$work/kernel" ;;
*) false ;;
esac || cp "$vmlinuz" "$work/kernel"
cp "$work/kernel" "$directory/kernel"
echo "$about" >"$directory/about"
echo "the guest in $directory: Linux $release, $(du -sh "$directory" | cut -f1)"
