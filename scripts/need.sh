#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# need.sh packages "a b c"   installs the Debian packages that are missing, and says which
# need.sh rust               checks for a Rust toolchain that is new enough
# need.sh cargo-deb          installs cargo-deb where it is missing
set -eu

# A clang that can compile the BPF programs; Debian 12's own is too old, its clang-19 is not.
CLANG_MIN=16
RUST_MIN=1.88
# What the package was last made with, and what is compatible with it.
CARGO_DEB=^3.8

clang_is_new_enough() {
	for clang in ${CLANG:-} clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16; do
		major=$("$clang" -dumpversion 2>/dev/null | cut -d. -f1) || continue
		[ "${major:-0}" -ge "$CLANG_MIN" ] && return 0
	done
	return 1
}

installed() {
	case $1 in
	clang) clang_is_new_enough ;;
	*) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
	esac
}

packages() {
	if ! command -v dpkg-query >/dev/null; then
		echo "need.sh: this is no Debian system; install by other means what is missing of: $1" >&2
		return 0
	fi
	missing=
	for package in $1; do
		installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	case " $missing " in
	*" clang "*)
		sudo_ apt-get update -q
		best=$(apt-cache pkgnames clang- | grep -E '^clang-[0-9]+$' | sort -t- -k2 -n | tail -1)
		missing=$(echo " $missing " | sed "s/ clang / ${best:-clang} /")
		;;
	esac
	echo "installing with apt-get:$missing"
	# shellcheck disable=SC2086 # a list of words
	sudo_ apt-get install -y -q --no-install-recommends $missing ||
		{ sudo_ apt-get update -q && sudo_ apt-get install -y -q --no-install-recommends $missing; }
}

sudo_() {
	if [ "$(id -u)" = 0 ]; then DEBIAN_FRONTEND=noninteractive "$@"; else sudo DEBIAN_FRONTEND=noninteractive "$@"; fi
}

rust_version() {
	rustc --version 2>/dev/null | cut -d' ' -f2
}

rust_is_new_enough() {
	version=$(rust_version) && [ -n "$version" ] &&
		[ "$(printf '%s\n%s\n' "$RUST_MIN" "$version" | sort -V | head -1)" = "$RUST_MIN" ]
}

# Debian packages rustup from release 13 on; there it is installed. Elsewhere that step is the user's.
rust() {
	rust_is_new_enough && return 0
	if command -v apt-cache >/dev/null && apt-cache show rustup >/dev/null 2>&1; then
		packages rustup
		echo "installing the stable Rust toolchain with rustup"
		rustup default stable
		rust_is_new_enough && return 0
	fi
	echo "need.sh: Rust $RUST_MIN or newer is needed, $(rust_version || true) is there; install it with rustup (rustup.rs), then run make again" >&2
	return 1
}

cargo_deb() {
	cargo deb --version >/dev/null 2>&1 && return 0
	echo "installing cargo-deb with cargo"
	cargo install cargo-deb --locked --version "$CARGO_DEB"
}

case ${1:-} in
packages) packages "$2" ;;
rust) rust ;;
cargo-deb) cargo_deb ;;
*) echo "usage: need.sh packages \"NAME ...\" | rust | cargo-deb" >&2; exit 2 ;;
esac
