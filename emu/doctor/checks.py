"""Every prerequisite of a lab, and what to do where it is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from emu.doctor.machine import Machine, Module
from emu.units import format_size

LEAST_OPENVSWITCH = (3, 1)
LEAST_PROCESSORS = 2
LEAST_MEMORY = 1 << 30
LEAST_DISK = 500 << 20
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_INSTALL = "apt-get install --no-install-recommends"
_CONTAINER = "give the container CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)"
_MODULE: Mapping[Module, str] = {
    "there": "modprobe {}",
    "absent": "a kernel with {}: Debian's linux-image-amd64 or -arm64 (cloud kernels lack some), or docs/vagrant.md's",
    "unknown": "modprobe {} on the machine whose kernel this is, if that kernel has it",
}
"""What to do about a module that is not loaded."""


@dataclass(frozen=True, slots=True)
class Check:
    """One prerequisite.

    ok: whether it is there. detail: what was found. fix: one line on what to do, "" if it is there.
    required: without it no lab runs; others only cost what the detail says.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    required: bool = True


def examine(machine: Machine | None = None) -> list[Check]:
    """Probe every prerequisite, in under three seconds; nothing outside throw-away namespaces is changed."""
    machine = machine or Machine()
    with ThreadPoolExecutor() as pool:
        controller = pool.submit(machine.controller)
        probed = pool.submit(machine.probe) if machine.root else None
        versions = pool.submit(lambda: machine.versions)
        return [
            _privileges(machine),
            *_programs(machine, versions.result()),
            _controller(controller.result()),
            _libraries(machine.libraries),
            *_kernel(machine, *(probed.result() if probed else ({}, "not tried: only root can"))),
            _datapath(machine),
            *_optional(machine),
            _congestion_control(machine),
            *_resources(machine),
        ]


# -- who runs it -----------------------------------------------------------------------------------------------------


def _privileges(machine: Machine) -> Check:
    if not machine.root:
        return Check("privileges", False, "not root: namespaces and links need it", "run emu with sudo")
    names = {_CAP_SYS_ADMIN: "CAP_SYS_ADMIN", _CAP_NET_ADMIN: "CAP_NET_ADMIN"}
    lacking = [name for bit, name in names.items() if not machine.capabilities >> bit & 1]
    if lacking:
        return Check("privileges", False, f"root without {' and '.join(lacking)}", _CONTAINER)
    return Check("privileges", True, "root, with the capabilities to make namespaces and links")


# -- programs --------------------------------------------------------------------------------------------------------


def _programs(machine: Machine, versions: Mapping[str, str]) -> Iterator[Check]:
    yield _installed(machine, "util-linux", ("unshare", "setpriv", "nsenter", "mount"), "util-linux")
    yield _installed(machine, "iproute2", ("ip", "tc"), "iproute2")
    yield _open_vswitch(machine, versions.get("openvswitch", "missing"))
    yield _mininet(machine, versions.get("mininet", "missing"))
    iperf3 = versions.get("iperf3", "missing")
    yield _found(
        "iperf3", iperf3 != "missing", f"version {iperf3}", "not installed: rates cannot be cross-checked", "iperf3"
    )


def _installed(machine: Machine, name: str, programs: tuple[str, ...], package: str) -> Check:
    missing = [program for program in programs if not machine.has(program)]
    return _found(name, not missing, ", ".join(programs), f"not found: {', '.join(missing)}", package)


def _open_vswitch(machine: Machine, version: str) -> Check:
    programs = ("ovsdb-server", "ovsdb-tool", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl")
    installed = _installed(machine, "Open vSwitch", programs, "openvswitch-switch")
    if not installed.ok:
        return installed
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    least = ".".join(map(str, LEAST_OPENVSWITCH))
    if numbers < LEAST_OPENVSWITCH:
        problem = f"version {version}; bundles need {least} or newer"
        return Check("Open vSwitch", False, problem, f"install Open vSwitch {least} or newer (Debian 12 has 3.1)")
    return Check("Open vSwitch", True, f"version {version}")


def _mininet(machine: Machine, version: str) -> Check:
    missing = [] if machine.has("mnexec") else ["the program mnexec"]
    if version == "missing":
        missing.append("the Python package")
    return _found("Mininet", not missing, f"version {version}", f"not found: {', '.join(missing)}", "mininet")


def _controller(trouble: str) -> Check:
    fix = "" if not trouble else "pip install os-ken==4.2.2 into emu's environment (make install does)"
    return Check("controller", not trouble, trouble or "its OpenFlow library can be imported", fix)


def _libraries(versions: Mapping[str, str]) -> Check:
    missing = [name for name, version in versions.items() if version == "missing"]
    problem = f"not installed: {', '.join(missing)}"
    fix = "make install, or pip install emu's directory again: it has come to need them" if missing else ""
    return Check("libraries", not missing, problem if missing else "all that emu asks for are installed", fix)


def _found(name: str, ok: bool, detail: str, problem: str, package: str, *, required: bool = True) -> Check:
    return Check(name, ok, detail if ok else problem, "" if ok else f"{_INSTALL} {package}", required)


# -- what the kernel does --------------------------------------------------------------------------------------------


def _kernel(machine: Machine, tried: Mapping[str, str], trouble: str) -> Iterator[Check]:
    """What was tried in a throw-away lab."""
    fix = "sudo emu doctor" if "only root" in trouble else f"{_CONTAINER}, or use a virtual machine"
    for name, (what, fix_of_its_own, required) in _TRIED.items():
        problem = trouble or tried.get(name, "not tried")
        detail = f"{what}: works" if not problem else f"{what}: {problem}"
        if not problem:
            advice = ""
        elif trouble or not fix_of_its_own:
            advice = fix
        else:
            advice = fix_of_its_own.format(module=_module_fix(machine, _MODULES.get(name, "")))
        yield Check(name, not problem, detail, advice, required)


def _module_fix(machine: Machine, module: str) -> str:
    return _MODULE[machine.module(module)].format(module)


def _datapath(machine: Machine) -> Check:
    """Which datapath labs take here."""
    if machine.datapath == "kernel":
        return Check("datapath", True, "the kernel's: the openvswitch module is loaded", required=False)
    detail = "userspace: the openvswitch module is not loaded; emulated rates are lower"
    return Check("datapath", False, detail, _module_fix(machine, "openvswitch"), required=False)


_TRIED: Mapping[str, tuple[str, str, bool]] = {
    "namespaces": ("private network, process and mount namespaces", "", True),
    "tmpfs": ("a file system of its own over /run", "", True),
    "veth": ("virtual cables", "{module}", True),
    "shaping": ("HTB with a byte-limited FIFO", "{module}", True),
    "buffers": (
        "raising Open vSwitch's socket buffers (pidfd_getfd, SO_SNDBUFFORCE)",
        "give the container CAP_SYS_PTRACE and CAP_NET_ADMIN; without, packets are lost at higher rates",
        False,
    ),
    "delay": (
        "netem, for links with a delay",
        "{module}; without, scenarios with delays run only with delay: best-effort, which leaves them out",
        False,
    ),
}
"""By probe: what it is, its own fix ("": that of the namespaces), and whether a lab needs it."""

_MODULES: Mapping[str, str] = {"veth": "veth", "shaping": "sch_htb", "delay": "sch_netem"}
"""By probe: the kernel's module that does it, for the `{module}` of its fix."""


def _optional(machine: Machine) -> Iterator[Check]:
    uses = {"tcpdump": "to capture links (`capture:` in a scenario)", "ethtool": "to look at offloads by hand"}
    for program, use in uses.items():
        yield _found(program, machine.has(program), use, f"not installed ({use})", program, required=False)


def _congestion_control(machine: Machine) -> Check:
    found = machine.read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    missing = [name for name in ("cubic", "reno", "bbr") if name not in found]
    detail = f"available: {' '.join(found)}"
    if missing:
        detail += f"; scenarios cannot ask for {', '.join(missing)}"
    usable = "cubic" in found
    modules = " ".join(f"tcp_{name}" for name in missing)
    fix = _module_fix(machine, modules) if missing else ""
    return Check("congestion control", not missing, detail, fix, required=not usable)


def _resources(machine: Machine) -> Iterator[Check]:
    count = machine.processors
    yield Check(
        "processors",
        count >= LEAST_PROCESSORS,
        f"{count}",
        ""
        if count >= LEAST_PROCESSORS
        else f"use a machine with {LEAST_PROCESSORS} or more: traffic and switches share it",
        required=False,
    )
    found = re.search(r"MemAvailable:\s+(\d+)", machine.read("/proc/meminfo"))
    memory = int(found[1]) * 1024 if found else 0
    yield _amount("memory", memory, LEAST_MEMORY, "available", "end other programs or use a larger machine")
    yield _amount("disk", machine.free_disk, LEAST_DISK, "free here", "run emu where there is more room, or give --out")


def _amount(name: str, amount: int, least: int, what: str, fix: str) -> Check:
    ok = amount >= least
    detail = f"{format_size(amount)} {what}" + ("" if ok else f"; a run needs {format_size(least)}")
    return Check(name, ok, detail, "" if ok else fix)
