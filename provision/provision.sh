#!/bin/bash
# Sets up a Debian 12 machine for emu. Usage: provision/provision.sh [CHECKOUT]
#
# CHECKOUT is where emu's files lie; default: the directory above this script's. In turn:
#   1. what `make install` needs before it can begin
#   2. `make install`
#   3. the kernel's modules that labs use: loaded now, and at every start of the machine
#   4. `emu doctor`, whose verdict is this script's
#
# Call it as root or as a user who may sudo. It can be called again at any time; what is there already stays as it is.
set -Eeuo pipefail
trap 'echo "provision: stopped at line $LINENO, exit status $?: $BASH_COMMAND" >&2' ERR

readonly MODULES=(openvswitch sch_netem sch_htb veth tun tcp_bbr)
readonly AT_BOOT=/etc/modules-load.d/emu.conf
readonly NEEDED_FIRST=(ca-certificates make)

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)

say() { echo "provision: $*"; }

installed() {
  dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

prepare() {
  local package missing=()
  for package in "${NEEDED_FIRST[@]}"; do
    installed "$package" || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  say "installing Debian packages: ${missing[*]}"
  "${sudo[@]}" apt-get --quiet --quiet update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get --quiet --quiet install --yes --no-install-recommends "${missing[@]}"
}

load_modules() {
  local module missing=()
  if ! printf '%s\n' "${MODULES[@]}" | cmp --quiet - "$AT_BOOT"; then
    say "the kernel will load ${MODULES[*]} at every start: $AT_BOOT"
    "${sudo[@]}" mkdir -p "$(dirname "$AT_BOOT")"
    printf '%s\n' "${MODULES[@]}" | "${sudo[@]}" tee "$AT_BOOT" >/dev/null
  fi
  for module in "${MODULES[@]}"; do
    [ -e "/sys/module/$module" ] || "${sudo[@]}" modprobe "$module" 2>/dev/null || missing+=("$module")
  done
  # No failure: a kernel may have them built in, and a container cannot load any. `emu doctor` tries what they do.
  [ "${#missing[@]}" -eq 0 ] || say "kernel $(uname -r) loads no module named ${missing[*]}; what that costs, if anything, emu doctor says"
}

checkout=$(cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" && pwd)
[ -f "$checkout/pyproject.toml" ] || { say "$checkout is no checkout of emu" >&2; exit 2; }
say "setting up emu from $checkout"
prepare
make --directory "$checkout" install
load_modules
"${sudo[@]}" emu doctor
say "done: sudo emu run $checkout/scenarios/quickstart.yaml"
