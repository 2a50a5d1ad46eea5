# SPDX-License-Identifier: MIT OR Apache-2.0
# On a fresh Debian machine: `make demo` runs the main job, `make test` passes the tests. Each installs what it lacks
# and says so.

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
BUILD_PACKAGES := clang libelf-dev zlib1g-dev pkg-config gcc libc6-dev
RUN_PACKAGES := iproute2
TEST_PACKAGES := iperf3 bpftool python3 chromium rsync restic rclone borgbackup git openssh-server openssh-client procps
BENCH_PACKAGES := valgrind
LIFE_PACKAGES := rclone rsync openssh-server openssh-client restic borgbackup curl wget git python3 python3-requests nginx-light docker-registry skopeo postgresql
LAB_PACKAGES := g++ libns3-dev libgsl-dev
FUZZ_PACKAGES := g++
DEB_PACKAGES := dpkg-dev

.PHONY: build demo test test-long test-all promises faults kernels soak bench life fuzz lab lab-guest-image lab-truth lab-kernels lab-laws lab-deadlines lab-rivals lab-weights lab-connections lab-paths lab-full lint fmt install uninstall deb try-deb deps-build deps-run deps-test deps-bench deps-life deps-lab deps-fuzz deps-deb

build: deps-build
	$(CARGO) build --release --locked

# Root is for the demo alone: namespaces, TUN and BPF.
demo: build deps-run
	$(SUDO) target/release/lowtide demo

# Tests of the real kernel need root. They are ignored where they cannot run, unless LOWTIDE_REQUIRE_KERNEL=1 says that
# they have to. The test that is skipped is run by another one, on a terminal of its own. Tests are built with
# --workspace here and below, and nothing with -p: a choice of packages has other features of their dependencies, so
# these and most of our crates would be built once more for each.
test: lint deps-run deps-test
	@scripts/promtool.sh $(CURDIR)/target/promtool
	$(CARGO) test --workspace --locked --no-run
	@if [ "$$LOWTIDE_REQUIRE_KERNEL" = 1 ] || { [ -e /dev/net/tun ] && target/debug/lowtide doctor >/dev/null 2>&1; }; then kernel=--include-ignored; \
	else echo "make test: the tests of the real kernel are ignored; lowtide doctor says what they lack (root, in most cases)"; fi; \
	CARGO="$(CARGO)" scripts/run-tests.py --show-output --skip panics_while_the_program_has_the_keyboard $$kernel

# The suites that take minutes, as root with nothing else running: whole experiments in the simulator (acceptance),
# three transfers with one budget (budget), a database's clients beside its base backup (database), each law over a
# lossy and reordering link (laws), a guest with an older kernel, where there is its image (make lab-guest-image), and
# rates and delays in virtual time (make promises).
test-long: deps-build deps-run deps-test
	$(CARGO) test --workspace --locked --test acceptance -- --show-output
	$(CARGO) test --workspace --locked --test budget --test database --test laws -- --show-output --include-ignored --skip a_hundred_megabytes
	$(CARGO) test --workspace --locked --test guest -- --show-output
	$(MAKE) promises

# What `lowtide run` promises beside a foreground, and rates and delays of the emulated link, in a guest: in virtual
# time, where the load of this machine does not matter. The guest's kernel is Debian's first that has links of
# struct_ops.
PROMISES_KERNEL := linux-image-6.12-amd64 linux-image-amd64
promises: deps-build deps-run deps-test
	@GUEST_KERNEL="$(PROMISES_KERNEL)" scripts/guest-image.sh target/lab/promises
	LOWTIDE_GUEST=$(CURDIR)/target/lab/promises/guest $(CARGO) test --workspace --locked --test promises --test timing -- --show-output --include-ignored

# And what takes longer, or the machine for itself: an hour more.
test-all: test test-long faults kernels try-deb fuzz

# What can go wrong on the way of a transfer, or be done to it, on this machine's kernel, as root and with nothing else
# running: five minutes.
faults: deps-build deps-run deps-test
	LOWTIDE_REQUIRE_KERNEL=1 $(CARGO) test --workspace --locked --test faults -- --ignored --test-threads=2

# Lowtide on other kernels of Debian's, each booted under QEMU in virtual time: a minute for each, and the download.
# KERNELS="linux-image-6.12.9-amd64" chooses packages that apt knows; of several joined by commas, the first that it
# knows. Debian 12 has 6.1 and 6.12.
KERNELS ?= $(foreach flavour,amd64 cloud-amd64 rt-amd64,linux-image-$(flavour) linux-image-6.12-$(flavour),linux-image-$(flavour))
kernels: deps-build
	@for packages in $(KERNELS); do \
		image=target/lab/kernels/$${packages%%,*}; \
		GUEST_KERNEL=$$(echo $$packages | tr , ' ') scripts/guest-image.sh $$image && LOWTIDE_GUEST=$(CURDIR)/$$image/guest \
			$(CARGO) test --workspace --locked --test kernels -- --ignored --nocapture || exit 1; \
	done

# Thousands of transfers with random faults, for half an hour or LOWTIDE_SOAK_MINUTES: deadlines are met, and no memory
# is lost. Root.
soak: deps-build deps-run deps-test
	LOWTIDE_REQUIRE_KERNEL=1 $(CARGO) test --workspace --locked --release --test soak -- --ignored --nocapture

# With ns-3 (apt-get install libns3-dev libgsl-dev g++) the simulator is timed beside it.
bench: deps-build deps-run deps-test deps-bench
	$(CARGO) bench --locked -p lowtide-sim --bench speed
	$(CARGO) bench --locked -p lowtide-emu --bench accuracy
	$(CARGO) bench --locked -p lowtide --bench promises --bench overhead --bench tracing

# Real programs over emulated links, with Lowtide and without, as root: over two hours, best with nothing else running.
# Renews docs/results/life.md and, of programs that download, docs/results/life-downloads.md. LIFE="--quick", or
# "--runs 3 downloads 20mbit", chooses a part; see the head of crates/lowtide/benches/life/main.rs. Only the whole is
# written. Debian starts nginx, docker-registry and PostgreSQL when they are installed; the battery needs only its own.
life: deps-build deps-run deps-life
	$(CARGO) bench --locked -p lowtide --bench life -- $(or $(LIFE),uploads --write $(CURDIR)/docs/results/life.md)
ifndef LIFE
	$(CARGO) bench --locked -p lowtide --bench life -- downloads --write $(CURDIR)/docs/results/life-downloads.md
endif

# A quick look at all targets and at the table of rivals, and the sample of the deadline matrix, in the simulator: under
# an hour on two processors. What has been run already is not run again. The page: lab-report/index.html.
lab: build
	target/release/lowtide lab run --quick
	target/release/lowtide lab report
	$(MAKE) lab-deadlines

# The simulator beside this machine's kernel and ns-3, and transfers with a deadline on both: about an hour, as root,
# best with nothing else running. Renews the tables of docs/results/ground-truth.md and
# docs/results/deadlines-in-the-kernel.md. LAB=ns3 or LAB="reno-alone --keep FILE" chooses a part of the first,
# DEADLINES="cubic-pid --runs 2" of the second; see the heads of crates/lowtide/benches/*/main.rs.
lab-truth: deps-build deps-run deps-test deps-lab
	$(CARGO) bench --locked -p lowtide --bench ground_truth -- $(LAB) --write $(CURDIR)/docs/results/ground-truth.md
	$(CARGO) bench --locked -p lowtide --bench deadlines -- $(DEADLINES) --write $(CURDIR)/docs/results/deadlines-in-the-kernel.md

# Are deadlines met, and at what price: 300 cells of a matrix in the simulator, always the same, and the table of laws.
# Under twenty minutes on two processors; what has been measured already is not measured again. LOWTIDE_WRITE_DOCS=1
# renews docs/results/deadline-matrix.md.
lab-deadlines: deps-build
	$(CARGO) bench --locked -p lowtide-sim --bench deadline_matrix

# Every law in the background of every kind of foreground: a sample of the held-out set, always
# the same, five runs of each. About half an hour on two processors; what has been run already is not run again.
# LOWTIDE_WRITE_DOCS=1 renews docs/results/rivals.md. All cells: target/release/lowtide lab run rivals, hours; the half
# that things are tuned on: --in-view.
lab-rivals: build
	target/release/lowtide lab run rivals --quick --held-out --runs 5
	target/release/lowtide lab report rivals --held-out --runs 5 --out target/lab-rivals $(if $(filter 1,$(LOWTIDE_WRITE_DOCS)),--markdown docs/results/rivals.md)

# The experiments with the TCP of this machine's kernel, as root and best with nothing else running, and with that of a
# guest's: some hours, of which what has been recorded is not recorded again. Renews docs/results/on-kernels.md, which
# says what the simulator makes of the same scenarios, too.
lab-kernels: build deps-run lab-guest-image
	$(SUDO) target/release/lowtide lab run --on kernel
	$(SUDO) target/release/lowtide lab run --on guest
	$(SUDO) target/release/lowtide lab report --kernels docs/results/on-kernels.md

# 100 MB under each law of ours over a lossy and reordering link, by IPv4 and IPv6, as root: ten minutes.
lab-laws: deps-build deps-run deps-test
	$(CARGO) test --workspace --locked --test laws -- --ignored --show-output a_hundred_megabytes

# What a weight is worth on this machine's kernel beside one flow of CUBIC: 24 links, three laws, five weights, as root
# and best with nothing else running: six hours and a half. It may be broken off, and goes on where it was; what was
# measured with other code is measured again. Renews docs/results/weights.md. WEIGHTS="--laws tide --cells 8" chooses a
# part; the head of crates/lowtide/benches/weights/main.rs has more.
lab-weights: deps-build deps-run deps-test
	$(CARGO) bench --locked -p lowtide --bench weights -- $(WEIGHTS) --keep $(CURDIR)/target/weights.json --write $(CURDIR)/docs/results/weights.md

# Programs with many connections in the simulator, under Tide, CDG and LEDBAT++: five minutes with the compiler. Renews
# docs/results/connections.md. CONNECTIONS="tide --starts 7" prints a part in ten seconds, to try a change of the law.
lab-connections: deps-build
	$(CARGO) bench --locked -p lowtide-sim --bench connections -- $(or $(CONNECTIONS),tide cdg ledbatpp --write $(CURDIR)/docs/results/connections.md)

# Laws on some forty paths, slow and fast, noisy and bursty, on this machine's kernel and in the simulator: as root and
# best with nothing else running, two hours for a run of each cell. It may be broken off, and goes on where it was; what
# was measured with other code is measured again. Renews docs/results/paths.md. PATHS="--simulator --laws tide" takes
# minutes; the head of crates/lowtide/benches/paths/main.rs has more.
lab-paths: deps-build deps-run deps-test
	$(CARGO) bench --locked -p lowtide --bench paths -- $(or $(PATHS),--write docs/results/paths.md) --keep $(CURDIR)/target/paths.json

# The guest of `lowtide lab run --on guest`: QEMU, and a Debian kernel with its modules in target/lab/guest. It
# downloads 70 MB.
lab-guest-image:
	@scripts/guest-image.sh $(CURDIR)/target/lab

# All runs of all experiments, and all 16800 cells of the deadline matrix: a day. It may be broken off, and goes on
# where it was.
lab-full: build
	target/release/lowtide lab run
	target/release/lowtide lab report
	$(CARGO) bench --locked -p lowtide-sim --bench deadline_matrix -- matrix --full

# A fuzzer for each kind of text that is read, FUZZ_SECONDS for each (60 unless given); FUZZ="when size" chooses some.
# They start with the texts of fuzz/corpus and keep what they find in target/fuzz/corpus; what goes wrong is in
# target/fuzz/failures: mend it, and keep it in fuzz/corpus. The layout is that of cargo-fuzz, which adds sanitizers on
# a nightly toolchain; a stable one suffices here.
FUZZ ?= $(notdir $(wildcard fuzz/corpus/*))
FUZZ_SECONDS ?= 60
FUZZ_HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1

fuzz: deps-build deps-fuzz
	RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) build --locked --manifest-path fuzz/Cargo.toml --target $(FUZZ_HOST) --target-dir target/fuzz
	@for target in $(FUZZ); do \
		mkdir -p target/fuzz/corpus/$$target target/fuzz/failures; \
		echo "fuzz: $$target"; \
		target/fuzz/$(FUZZ_HOST)/debug/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 -verbosity=0 \
			-artifact_prefix=target/fuzz/failures/$$target- target/fuzz/corpus/$$target fuzz/corpus/$$target || exit 1; \
	done

lint: deps-build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --test '*' --locked -- -D warnings

fmt:
	$(CARGO) fmt --all

# Where it goes: PREFIX, below DESTDIR for those who make packages. An earlier version was in sbin, and would be found
# first.
PREFIX ?= /usr/local
DESTDIR ?=
BINARY := target/release/lowtide
SHARE := $(DESTDIR)$(PREFIX)/share
COMPLETIONS := $(SHARE)/bash-completion/completions/lowtide $(SHARE)/zsh/site-functions/_lowtide $(SHARE)/fish/vendor_completions.d/lowtide.fish
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/system
INSTALLED_UNITS := lowtide-attach@.service lowtide-metrics.service lowtide-metrics.timer
INSTALL_SUDO := $(if $(DESTDIR),,$(SUDO))

install: build
	rm -rf target/install
	$(BINARY) man target/install
	$(BINARY) completions bash > target/install/lowtide.bash
	$(BINARY) completions zsh > target/install/lowtide.zsh
	$(BINARY) completions fish > target/install/lowtide.fish
	$(INSTALL_SUDO) install -D -s -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/lowtide
	$(INSTALL_SUDO) install -D -m 644 -t $(SHARE)/man/man1 target/install/*.1
	$(INSTALL_SUDO) install -D -m 644 target/install/lowtide.bash $(word 1,$(COMPLETIONS))
	$(INSTALL_SUDO) install -D -m 644 target/install/lowtide.zsh $(word 2,$(COMPLETIONS))
	$(INSTALL_SUDO) install -D -m 644 target/install/lowtide.fish $(word 3,$(COMPLETIONS))
	$(INSTALL_SUDO) mkdir -p $(UNITS)
	for unit in $(INSTALLED_UNITS); do sed 's|/usr/bin/lowtide|$(PREFIX)/bin/lowtide|' packaging/systemd/$$unit > target/install/unit && \
		$(INSTALL_SUDO) install -m 644 target/install/unit $(UNITS)/$$unit || exit 1; done
	$(INSTALL_SUDO) rm -f $(DESTDIR)$(PREFIX)/sbin/lowtide

# With the same PREFIX and DESTDIR. What jobs sent and how they ended stays in /var/lib/lowtide.
uninstall:
	$(INSTALL_SUDO) rm -f $(DESTDIR)$(PREFIX)/bin/lowtide $(DESTDIR)$(PREFIX)/sbin/lowtide $(COMPLETIONS)
	$(INSTALL_SUDO) rm -f $(addprefix $(UNITS)/,$(INSTALLED_UNITS))
	$(INSTALL_SUDO) rm -f $(SHARE)/man/man1/lowtide.1 $(SHARE)/man/man1/lowtide-*.1

# A package for Debian, in target/debian, and a try at installing and purging it in a root of its own.
deb: build deps-deb
	rm -rf target/deb target/debian
	$(MAKE) -o build install DESTDIR=target/deb PREFIX=/usr
	$(CARGO) deb --locked --no-build -p lowtide
	$(SUDO) scripts/try-deb.sh target/debian/*.deb

# That package in a Debian with systemd as its first process, under QEMU in virtual time: what its units do there, and
# that purging it leaves nothing. Five minutes; the first time the Debian is downloaded, 338 MB in target/lab/debian.
try-deb: deb
	@scripts/debian-image.sh target/lab/debian
	LOWTIDE_DEB=$$(realpath target/debian/*.deb) LOWTIDE_GUEST=$(CURDIR)/target/lab/debian/guest \
		$(CARGO) test --workspace --locked --test debian -- --ignored --nocapture

deps-build:
	@scripts/need.sh packages "$(BUILD_PACKAGES)"
	@scripts/need.sh rust

deps-run:
	@scripts/need.sh packages "$(RUN_PACKAGES)"

deps-bench:
	@scripts/need.sh packages "$(BENCH_PACKAGES)"

deps-fuzz:
	@scripts/need.sh packages "$(FUZZ_PACKAGES)"

deps-life:
	@scripts/need.sh packages "$(LIFE_PACKAGES)"

deps-lab:
	@scripts/need.sh packages "$(LAB_PACKAGES)"

deps-test:
	@scripts/need.sh packages "$(TEST_PACKAGES)"

deps-deb:
	@scripts/need.sh packages "$(DEB_PACKAGES)"
	@scripts/need.sh cargo-deb
