#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# packages.sh FILES REPOSITORY: makes a package for apt of each file, and the index of them all.
set -eu
pool=$2/pool
mkdir -p "$pool"
for file in "$1"/*; do
	name=$(basename "$file")
	tree=$2/tree/$name
	mkdir -p "$tree/DEBIAN" "$tree/srv"
	ln "$file" "$tree/srv/$name"
	printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: life\nDescription: a file\n' "$name" > "$tree/DEBIAN/control"
	dpkg-deb -Znone --build "$tree" "$pool" > /dev/null
	package=pool/${name}_1_all.deb
	cat "$tree/DEBIAN/control"
	digest=$(sha256sum < "$2/$package")
	printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$package" "$(stat -c %s "$2/$package")" "${digest%% *}"
done > "$2/Packages"
