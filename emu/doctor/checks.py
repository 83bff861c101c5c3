"""Every prerequisite of a lab, and what to do where it is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from emu.doctor.machine import Machine
from emu.units import format_size

LEAST_OPENVSWITCH = (3, 1)
LEAST_PROCESSORS = 2
LEAST_MEMORY = 1 << 30
LEAST_DISK = 500 << 20
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_INSTALL = "apt-get install --no-install-recommends"
_CONTAINER = "give the container CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)"


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
            *_kernel(*(probed.result() if probed else ({}, "not tried: only root can"))),
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
    yield _open_vswitch(machine, versions.get("openvswitch", "missing"))
    yield _mininet(machine)
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


def _mininet(machine: Machine) -> Check:
    missing = [] if machine.has("mnexec") else ["the program mnexec"]
    if not machine.has_mininet():
        missing.append("the Python package")
    return _found(
        "Mininet", not missing, "mnexec and the Python package", f"not found: {', '.join(missing)}", "mininet"
    )


def _controller(trouble: str) -> Check:
    fix = "" if not trouble else "pip install os-ken==4.2.2 into emu's environment (make install does)"
    return Check("controller", not trouble, trouble or "its OpenFlow library can be imported", fix)


def _found(name: str, ok: bool, detail: str, problem: str, package: str, *, required: bool = True) -> Check:
    return Check(name, ok, detail if ok else problem, "" if ok else f"{_INSTALL} {package}", required)


# -- what the kernel does --------------------------------------------------------------------------------------------


def _kernel(tried: Mapping[str, str], trouble: str) -> Iterator[Check]:
    """What was tried in a throw-away lab."""
    fix = "sudo emu doctor" if "only root" in trouble else f"{_CONTAINER}, or use a virtual machine"
    for name, (what, fix_of_its_own, required) in _TRIED.items():
        problem = trouble or tried.get(name, "not tried")
        detail = f"{what}: works" if not problem else f"{what}: {problem}"
        advice = "" if not problem else (fix if trouble or not fix_of_its_own else fix_of_its_own)
        yield Check(name, not problem, detail, advice, required)


_TRIED: Mapping[str, tuple[str, str, bool]] = {
    "namespaces": ("private network, process and mount namespaces", "", True),
    "tmpfs": ("a file system of its own over /run", "", True),
    "veth": ("virtual cables", "modprobe veth, or a kernel with CONFIG_VETH", True),
    "shaping": ("HTB with a byte-limited FIFO", "modprobe sch_htb, or a kernel with CONFIG_NET_SCH_HTB", True),
    "buffers": (
        "raising Open vSwitch's socket buffers (pidfd_getfd, SO_SNDBUFFORCE)",
        "give the container CAP_SYS_PTRACE and CAP_NET_ADMIN; without, packets are lost at higher rates",
        False,
    ),
    "delay": (
        "netem, for links with a delay",
        "modprobe sch_netem (Debian cloud kernels lack it); without, only delay: best-effort runs such scenarios",
        False,
    ),
}
"""By probe: what it is, its own fix ("": that of the namespaces), and whether a lab needs it."""


def _optional(machine: Machine) -> Iterator[Check]:
    in_kernel = machine.datapath == "kernel"
    yield Check(
        "datapath",
        in_kernel,
        "the kernel's" if in_kernel else "userspace: the openvswitch module is not loaded; emulated rates are lower",
        "" if in_kernel else "modprobe openvswitch",
        required=False,
    )
    for program, use in (("tcpdump", "to capture packets by hand"), ("ethtool", "to look at offloads by hand")):
        yield _found(program, machine.has(program), use, f"not installed ({use})", program, required=False)


def _congestion_control(machine: Machine) -> Check:
    found = machine.read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    missing = [name for name in ("cubic", "reno", "bbr") if name not in found]
    detail = f"available: {' '.join(found)}"
    if missing:
        detail += f"; scenarios cannot ask for {', '.join(missing)}"
    usable = "cubic" in found
    fix = f"modprobe {' '.join(f'tcp_{name}' for name in missing)}" if missing else ""
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
