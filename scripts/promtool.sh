#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# promtool.sh DIRECTORY   unpacks Prometheus' promtool to DIRECTORY/promtool, for the tests of the metrics. The package
# is not installed: that would start a server.
set -eu

directory=$1
[ ! -x "$directory/promtool" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "promtool.sh: this is no Debian system; put promtool into $directory yourself" >&2
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# As root apt would hand the download to a user that may not write here.
download() {
	(cd "$work" && apt-get download -q -o APT::Sandbox::User=root prometheus)
}
download || { apt-get update -q && download; } || {
	echo "promtool.sh: the package prometheus could not be downloaded; its test is skipped" >&2
	exit 0
}
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" ./usr/bin/promtool
mkdir -p "$directory"
mv "$work/usr/bin/promtool" "$directory/"
echo "promtool is in $directory"
