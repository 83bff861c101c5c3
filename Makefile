# make run      install what is missing, then run the first scenario
# make install  only install: Debian packages, a virtual environment, `emu` on the path
# make test     install the tests' tools and Ryu too, then check and test everything (needs root, calls sudo for it)
# make ryu      only install Ryu, the second OpenFlow library, into a virtual environment of its own
# make lint     style and types only
# make bench    measure how exact and how repeatable measurements are here; takes many minutes
# make lock     write requirements/*.lock anew after a change of dependencies; UPGRADE=--upgrade takes newer versions
# make clean    remove what the others made in this directory, and the link to it
#
# As root nothing here needs sudo. No service is started and no other file of the system is changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := run
.PHONY: run install test test-packages ryu lint bench lock clean

SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)
# Debian 12's own interpreter: Mininet's package is made for it.
PYTHON := /usr/bin/python3
# Where this directory cannot hold an environment, give another: make install VENV=/opt/emu
VENV := .venv
BIN := $(abspath $(VENV))/bin
LINK := /usr/local/bin/emu
# The locks name every package with its version and its files' hashes. All but Ryu are there as wheels, so that nothing is
# built with what no lock names: emu itself and Ryu are built with the setuptools that was installed before by its lock.
LOCKS := requirements
PIP_OPTIONS := --disable-pip-version-check --quiet
LOCKED := --require-hashes
PIP := $(BIN)/python -m pip $(PIP_OPTIONS)
# Ryu has an environment of its own, since it cannot be built with what the rest is built with. Each version's reason:
# setuptools: Ryu's set-up replaces a function of it that today's no longer have
# pbr, wheel: Ryu's set-up calls them; they must be there first, since a build in isolation would fetch new setuptools
# ryu:        the last release
# eventlet:   Ryu's event loop; emu gives it back a name that Ryu imports, which was tried with this one
# pydantic:   emu's own part of the controller process needs it, as pyproject.toml has it
RYU_VENV := .venv-ryu
RYU_PIP := $(RYU_VENV)/bin/python -m pip $(PIP_OPTIONS)
RYU_BUILT_WITH := 'setuptools==57.5.0' 'pbr==7.1.3' 'wheel==0.48.0'
RYU_PACKAGES := 'ryu==4.34' 'eventlet==0.41.3' 'pydantic>=2.7,<3'
# What writes the locks: it resolves for every platform and Python at once, and asks PyPI whatever pip is set up to ask.
LOCK_VENV := .venv-lock
UPGRADE :=
COMPILE := $(LOCK_VENV)/bin/uv pip compile --quiet --python $(LOCK_VENV)/bin/python --python-version 3.11 --universal \
  --only-binary :all: --generate-hashes --custom-compile-command 'make lock' $(UPGRADE)
# Only tests need these Debian packages:
# chromium, chromium-driver: reports are opened in it
# fonts-inter: what reports are written in where it is there
# prometheus:  promtool reads exported metrics back (its service is not started)
# debootstrap: a clean root file system, in which the provisioning script is tried
# shellcheck:  looks over the scripts
# tshark:      reads exported packets back
# vagrant, vagrant-libvirt: check the Vagrantfile
TEST_PACKAGES := chromium chromium-driver debootstrap fonts-inter prometheus shellcheck tshark vagrant vagrant-libvirt
PACKAGES := mininet openvswitch-switch iperf3 iputils-ping tcpdump ethtool python3-venv iproute2 util-linux procps kmod
# Root must leave nothing in the checkout that its owner cannot remove.
AS_ROOT := $(SUDO) env PYTHONDONTWRITEBYTECODE=1 PATH="$(BIN):$$PATH"

run: install
	$(AS_ROOT) $(BIN)/emu run scenarios/quickstart.yaml

install: $(VENV)/.installed

test: test-packages lint ryu
	$(AS_ROOT) $(BIN)/python -m pytest -p no:cacheprovider

test-packages:
	$(call INSTALL_PACKAGES,$(TEST_PACKAGES))

ryu: $(RYU_VENV)/.installed

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tested
	$(AS_ROOT) $(BIN)/python -m benchmarks

# Installs those of the Debian packages in $(1) that are missing.
define INSTALL_PACKAGES
@command -v dpkg-query >/dev/null || { echo "This installs Debian packages. Elsewhere, install these yourself: $(1)"; exit 1; }
@missing=$$(for package in $(1); do \
  dpkg-query --show --showformat='$${db:Status-Status}' "$$package" 2>/dev/null | grep -qx installed || echo "$$package"; \
done); \
if [ -n "$$missing" ]; then \
  echo "Installing Debian packages:" $$missing; \
  install="env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 apt-get --quiet --quiet"; \
  $(SUDO) $$install update; \
  $(SUDO) $$install install --yes --no-install-recommends $$missing; \
fi
endef

$(VENV)/.installed: pyproject.toml Makefile $(LOCKS)/emu.lock
	$(call INSTALL_PACKAGES,$(PACKAGES))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) must be Python 3.11, as in Debian 12, since Mininet's package needs it"; exit 1; }
	@echo "Installing emu into $(VENV)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(PIP) install $(LOCKED) --requirement $(LOCKS)/emu.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q emu topologies controllers workloads  # else root would, and own the directories
	@if [ -e $(LINK) ] && [ ! -L $(LINK) ]; then \
	  echo "$(LINK) is not a link and stays as it is; call emu as $(BIN)/emu"; \
	elif $(SUDO) ln -sfn "$(BIN)/emu" $(LINK); then \
	  echo "emu is on the path: $(LINK) -> $(BIN)/emu"; \
	else \
	  echo "$(LINK) could not be made; call emu as $(BIN)/emu"; \
	fi
	@touch $@

$(VENV)/.tested: $(VENV)/.installed $(LOCKS)/test.lock
	@echo "Installing what the tests need"
	@$(PIP) install $(LOCKED) --requirement $(LOCKS)/test.lock
	@touch $@

$(RYU_VENV)/.installed: Makefile $(LOCKS)/ryu-build.lock $(LOCKS)/ryu.lock | $(VENV)/.installed
	@echo "Installing Ryu into $(RYU_VENV)"
	@$(PYTHON) -m venv --clear $(RYU_VENV)
	@$(RYU_PIP) install $(LOCKED) --requirement $(LOCKS)/ryu-build.lock
	@$(RYU_PIP) install $(LOCKED) --no-build-isolation --requirement $(LOCKS)/ryu.lock
	@EMU_RYU=ryu $(RYU_VENV)/bin/python -B -W ignore -c 'import controllers.ryu_api'
	@touch $@

# Versions stay as they are where they still fit. What builds emu is locked with what it needs.
lock: $(LOCK_VENV)/.installed
	@mkdir -p $(LOCKS)
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  >$(LOCK_VENV)/build.in
	@$(COMPILE) --output-file $(LOCKS)/emu.lock pyproject.toml $(LOCK_VENV)/build.in
	@$(COMPILE) --output-file $(LOCKS)/test.lock --extra test --constraint $(LOCKS)/emu.lock \
	  pyproject.toml $(LOCK_VENV)/build.in
	@printf '%s\n' $(RYU_BUILT_WITH) >$(LOCK_VENV)/ryu-build.in
	@printf '%s\n' $(RYU_PACKAGES) >$(LOCK_VENV)/ryu.in
	@$(COMPILE) --output-file $(LOCKS)/ryu-build.lock $(LOCK_VENV)/ryu-build.in
	@$(COMPILE) --no-binary ryu --build-constraints $(LOCK_VENV)/ryu-build.in --output-file $(LOCKS)/ryu.lock \
	  $(LOCK_VENV)/ryu-build.in $(LOCK_VENV)/ryu.in
	@echo "Written: $(LOCKS)/*.lock"

$(LOCK_VENV)/.installed: Makefile
	@[ -x $(LOCK_VENV)/bin/python ] || $(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip $(PIP_OPTIONS) install 'uv==0.13.9'
	@touch $@

clean:
	[ "$$(readlink $(LINK))" != "$(BIN)/emu" ] || $(SUDO) rm $(LINK)
	$(SUDO) rm -rf $(VENV) $(RYU_VENV) $(LOCK_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec $(SUDO) rm -rf {} +
