# make run      install what is missing, then run the first scenario
# make install  only install: Debian packages, a virtual environment, `emu` on the path
# make test     install the tests' tools too, then check and test everything (needs root, calls sudo for it)
# make lint     style and types only
# make bench    measure how exact and how repeatable measurements are here; takes many minutes
# make clean    remove what the others made in this directory, and the link to it
#
# As root nothing here needs sudo. No service is started and no other file of the system is changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := run
.PHONY: run install test lint bench clean

SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)
# Debian 12's own interpreter: Mininet's package is made for it.
PYTHON := /usr/bin/python3
VENV := .venv
BIN := $(VENV)/bin
LINK := /usr/local/bin/emu
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGES := mininet openvswitch-switch iperf3 tcpdump ethtool python3-venv iproute2 util-linux procps kmod
# Root must leave nothing in the checkout that its owner cannot remove.
AS_ROOT := $(SUDO) env PYTHONDONTWRITEBYTECODE=1 PATH="$(CURDIR)/$(BIN):$$PATH"

run: install
	$(AS_ROOT) $(BIN)/emu run scenarios/quickstart.yaml

install: $(VENV)/.installed

test: lint
	$(AS_ROOT) $(BIN)/python -m pytest -p no:cacheprovider

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

clean:
	[ "$$(readlink $(LINK))" != "$(CURDIR)/$(BIN)/emu" ] || $(SUDO) rm $(LINK)
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
