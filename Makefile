# make run   builds and serves on this machine
# make test  proves every behaviour at small scale (what CI runs)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run release test test-picoclaw test-newer-engine test-fresh-clone test-long fuzz check deny typos docs each-crate bench services-up services-down tools

DATA ?= data
# A backtrace of the test's own runtime hides what the test said.
export RUST_BACKTRACE = 0
# A machine that builds once has no use for an incremental cache, nor for line numbers of backtraces: without them the build takes
# half of the disk.
ifdef CI
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_DEV_DEBUG = false
export CARGO_PROFILE_DEV_STRIP = debuginfo
endif
CARGO ?= cargo
# One build for all tests, with the named points at which a test can end the process.
NEXTEST = $(CARGO) nextest run --workspace --features agentyard/fault-injection
PIP = target/tools/bin/python3 -m pip install --quiet
# Tests that need the engine or PostgreSQL run where those are.
IN_NETNS = tests/services/in-netns

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@echo "others: check, test-long, fuzz, bench, release, services-up, services-down"

# Serves with SQLite in ./$(DATA) and the engine of this machine. Prints address and password.
run:
	$(CARGO) run --bin agentyard -- serve --data-dir $(DATA) $(ARGS)

release:
	$(CARGO) build --profile dist --bin agentyard

test: tools check services-up
	$(NEXTEST) --no-run
	trap 'tests/services/down' EXIT; $(IN_NETNS) $(NEXTEST) --offline --no-fail-fast
	@$(MAKE) --no-print-directory test-picoclaw
	@if [ -n "$$AGENTYARD_TEST_LONG" ]; then $(MAKE) --no-print-directory test-newer-engine test-fresh-clone; \
	  elif [ -x $(DEBIAN_13)/usr/sbin/dockerd ]; then $(MAKE) --no-print-directory test-newer-engine; \
	  else echo "skipped: the newest engine, which \`make test-newer-engine\` installs"; fi

# `make run`, which builds the program once more.
test-fresh-clone: services-up
	trap 'tests/services/down' EXIT; $(IN_NETNS) $(NEXTEST) --profile long --offline --run-ignored only -E 'test(/^fresh_clone::/)'

# The driver and the main job with Docker 26.1, the engine of Debian 13, which is installed beside this system.
DEBIAN_13 = target/tools/debian-13
test-newer-engine: export AGENTYARD_SERVICES_DIR = $(CURDIR)/.services/13
test-newer-engine: export AGENTYARD_TEST_DOCKERD_ROOT = $(CURDIR)/$(DEBIAN_13)
test-newer-engine: tools
	tests/services/debian-13 $(DEBIAN_13)
	trap 'tests/services/down' EXIT; tests/services/up && tests/services/echo-image && \
	  $(IN_NETNS) $(NEXTEST) --offline --no-fail-fast -E 'binary(engine_contract) + binary(engine_images) + test(/^main_job::/)'

# The agent itself with files of ours; it cannot be had from a registry, so whoever has it names it.
test-picoclaw:
ifdef AGENTYARD_TEST_PICOCLAW
	$(CARGO) nextest run -p schema --features real-picoclaw --test picoclaw_agent
else
	@echo "not run: PicoClaw's real binary (set AGENTYARD_TEST_PICOCLAW=/path/to/picoclaw)"
endif

# Every behaviour at full count.
test-long: export AGENTYARD_TEST_LONG = 1
test-long: export NEXTEST_PROFILE = long
test-long: test

# Damaged input for what reads what strangers wrote, with a nightly toolchain. What it finds is in schema/fuzz/artifacts.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS = front_matter import_zip
fuzz:
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz
	cp Cargo.lock schema/fuzz/Cargo.lock
	for target in $(FUZZ_TARGETS); do \
	  mkdir -p schema/fuzz/corpus/$$target && \
	  (cd schema && cargo +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=20000 -timeout=10 -rss_limit_mb=512) || exit 1; \
	done

# Everything that needs no service.
check: tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy -p agentyard --features fault-injection --all-targets -- -D warnings
	$(CARGO) clippy -p schema --features real-picoclaw --test picoclaw_agent -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet
	$(NEXTEST) --test layers
	$(MAKE) each-crate deny typos

# Each crate builds alone, with no help from its siblings' features.
each-crate:
	for crate in schema reconcilers api kit; do $(CARGO) check --quiet -p $$crate || exit 1; done

deny: tools
	$(CARGO) deny --all-features check bans licenses sources
	@$(CARGO) deny --all-features check advisories 2>target/advisories.log \
	  || { grep -q 'failed to fetch\|unable to fetch\|failed to prepare fetch\|error sending request' target/advisories.log \
	    && echo "the advisory database cannot be reached from here; advisories were not checked"; } \
	  || { cat target/advisories.log; exit 1; }

typos: tools
	target/tools/bin/typos

# What the checks need beyond the toolchain, if it is not there.
tools:
	@command -v cargo-nextest >/dev/null || $(CARGO) install --locked cargo-nextest
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	@[ -x target/tools/bin/python3 ] || { mkdir -p target && python3 -m venv target/tools; }
	@[ -x target/tools/bin/typos ] || $(PIP) typos
	@[ -x target/tools/bin/schemathesis ] || $(PIP) schemathesis==4.32.5
	@[ -x target/tools/bin/openapi-spec-validator ] || $(PIP) openapi-spec-validator==0.9.0

bench: services-up
	$(CARGO) bench --no-run --profile dist
	trap 'tests/services/down' EXIT; $(IN_NETNS) $(CARGO) bench --offline --profile dist

# The engine, its test images and PostgreSQL, in a network namespace of their own. Needs root.
services-up:
	tests/services/up
	tests/services/echo-image

services-down:
	tests/services/down
