# make run      install what is missing, then run the first scenario
# make install  only install: Debian packages, a virtual environment, `emu` on the path
# make test     install the tests' tools and Ryu too, then check and test everything (needs root, calls sudo for it)
# make ryu      only install Ryu, the second OpenFlow library, into a virtual environment of its own
# make lint     style and types only
# make bench    measure how exact and how repeatable measurements are here; takes many minutes
# make clean    remove what the others made in this directory, and the link to it
#
# As root nothing here needs sudo. No service is started and no other file of the system is changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := run
.PHONY: run install test ryu lint bench clean

SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)
# Debian 12's own interpreter: Mininet's package is made for it.
PYTHON := /usr/bin/python3
VENV := .venv
BIN := $(VENV)/bin
LINK := /usr/local/bin/emu
PIP_OPTIONS := --disable-pip-version-check --quiet
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
PACKAGES := mininet openvswitch-switch iperf3 tcpdump ethtool python3-venv iproute2 util-linux procps kmod
# Root must leave nothing in the checkout that its owner cannot remove.
AS_ROOT := $(SUDO) env PYTHONDONTWRITEBYTECODE=1 PATH="$(CURDIR)/$(BIN):$$PATH"

run: install
	$(AS_ROOT) $(BIN)/emu run scenarios/quickstart.yaml

install: $(VENV)/.installed

test: lint ryu
	$(AS_ROOT) $(BIN)/python -m pytest -p no:cacheprovider

ryu: $(RYU_VENV)/.installed

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tested
	$(AS_ROOT) $(BIN)/python -m benchmarks

$(VENV)/.installed: pyproject.toml Makefile
	@command -v dpkg-query >/dev/null || { echo "This installs Debian packages. Elsewhere, install these yourself: $(PACKAGES)"; exit 1; }
	@missing=$$(for package in $(PACKAGES); do \
	  dpkg-query --show --showformat='$${db:Status-Status}' "$$package" 2>/dev/null | grep -qx installed || echo "$$package"; \
	done); \
	if [ -n "$$missing" ]; then \
	  echo "Installing Debian packages:" $$missing; \
	  install="env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 apt-get --quiet --quiet"; \
	  $(SUDO) $$install update; \
	  $(SUDO) $$install install --yes --no-install-recommends $$missing; \
	fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) must be Python 3.11, as in Debian 12, since Mininet's package needs it"; exit 1; }
	@echo "Installing emu into $(VENV)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --editable .
	@if [ -e $(LINK) ] && [ ! -L $(LINK) ]; then \
	  echo "$(LINK) is not a link and stays as it is; call emu as $(CURDIR)/$(BIN)/emu"; \
	elif $(SUDO) ln -sfn "$(CURDIR)/$(BIN)/emu" $(LINK); then \
	  echo "emu is on the path: $(LINK) -> $(CURDIR)/$(BIN)/emu"; \
	else \
	  echo "$(LINK) could not be made; call emu as $(CURDIR)/$(BIN)/emu"; \
	fi
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	@echo "Installing what the tests need"
	@$(PIP) install --editable '.[test]'
	@touch $@

$(RYU_VENV)/.installed: Makefile | $(VENV)/.installed
	@echo "Installing Ryu into $(RYU_VENV)"
	@$(PYTHON) -m venv --clear $(RYU_VENV)
	@$(RYU_PIP) install $(RYU_BUILT_WITH)
	@$(RYU_PIP) install --no-build-isolation $(RYU_BUILT_WITH) $(RYU_PACKAGES)
	@EMU_RYU=ryu $(RYU_VENV)/bin/python -B -W ignore -c 'import controllers.ryu_api'
	@touch $@

clean:
	[ "$$(readlink $(LINK))" != "$(CURDIR)/$(BIN)/emu" ] || $(SUDO) rm $(LINK)
	rm -rf $(VENV) $(RYU_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
