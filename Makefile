# SPDX-License-Identifier: MIT OR Apache-2.0
# On a fresh Debian machine: `make demo` runs the main job, `make test` passes the tests. Each installs what it lacks and says so.

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
BUILD_PACKAGES := clang libelf-dev zlib1g-dev pkg-config gcc libc6-dev
RUN_PACKAGES := iproute2
TEST_PACKAGES := iperf3 bpftool

.PHONY: build demo test bench lint fmt install deps-build deps-run deps-test

build: deps-build
	$(CARGO) build --release --locked

# Root is for the demo alone: namespaces, TUN and BPF.
demo: build deps-run
	$(SUDO) target/release/lowtide demo

# Real-kernel tests need root; without it they skip with a sentence. LOWTIDE_REQUIRE_KERNEL=1 makes them mandatory.
test: lint deps-run deps-test
	$(CARGO) test --workspace --locked -- --show-output

bench: deps-build deps-run deps-test
	$(CARGO) bench --workspace --locked

lint: deps-build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt:
	$(CARGO) fmt --all

install: build
	$(SUDO) install -m 755 target/release/lowtide /usr/local/sbin/lowtide

deps-build:
	@scripts/need.sh packages "$(BUILD_PACKAGES)"
	@scripts/need.sh rust

deps-run:
	@scripts/need.sh packages "$(RUN_PACKAGES)"

deps-test:
	@scripts/need.sh packages "$(TEST_PACKAGES)"
