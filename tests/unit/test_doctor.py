"""What the doctor says of machines that lack something, one at a time; and of this one."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from emu.doctor import Check, examine
from emu.doctor.machine import Machine
from emu.doctor.probe import PROBES, attempt
from emu.lab.system import Datapath

MEMORY = "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n"
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_available_congestion_control"


@dataclass
class _Other(Machine):
    """A machine that has everything, unless a test takes something away."""

    root: bool = True
    capabilities: int = (1 << 41) - 1
    processors: int = 4
    free_disk: int = 10 << 30
    datapath: Datapath = "kernel"
    openvswitch: str = "3.1.0"
    lacks: tuple[str, ...] = ()
    mininet: str = "2.3.0"
    import_error: str = ""
    failures: Mapping[str, str] = field(default_factory=dict)
    no_namespaces: str = ""
    files: Mapping[str, str] = field(
        default_factory=lambda: {"/proc/meminfo": MEMORY, CONGESTION_CONTROL: "reno cubic bbr\n"}
    )

    @property
    def versions(self) -> Mapping[str, str]:
        iperf3 = "missing" if "iperf3" in self.lacks else "3.12"
        return {"openvswitch": self.openvswitch, "iperf3": iperf3, "mininet": self.mininet}

    @property
    def libraries(self) -> Mapping[str, str]:
        return {name: "missing" if name in self.lacks else "1.0" for name in ("numpy", "plotly")}

    def has(self, program: str) -> bool:
        return program not in self.lacks

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def controller(self) -> str:
        return self.import_error

    def probe(self) -> tuple[Mapping[str, str], str]:
        if self.no_namespaces:
            return {}, self.no_namespaces
        return dict.fromkeys(PROBES, "") | dict(self.failures), ""


def failed(machine: Machine) -> dict[str, Check]:
    return {check.name: check for check in examine(machine) if not check.ok}


def test_nothing_is_wrong_with_a_machine_that_has_everything() -> None:
    checks = examine(_Other())
    assert [check for check in checks if not check.ok or check.fix] == []
    assert len({check.name for check in checks}) == len(checks) == 21


@pytest.mark.parametrize(
    ("machine", "name", "detail", "fix"),
    [
        (_Other(capabilities=0), "privileges", "root without CAP_SYS_ADMIN and CAP_NET_ADMIN", "--privileged"),
        (_Other(capabilities=1 << 21), "privileges", "root without CAP_NET_ADMIN", "--privileged"),
        (_Other(lacks=("setpriv", "nsenter")), "util-linux", "not found: setpriv, nsenter", "util-linux"),
        (_Other(lacks=("tc",)), "iproute2", "not found: tc", "apt-get install --no-install-recommends iproute2"),
        (_Other(lacks=("plotly",)), "libraries", "not installed: plotly", "make install"),
        (_Other(lacks=("ovs-vswitchd",)), "Open vSwitch", "not found: ovs-vswitchd", "openvswitch-switch"),
        (_Other(openvswitch="2.17.9"), "Open vSwitch", "version 2.17.9; bundles need 3.1", "3.1 or newer"),
        (_Other(lacks=("mnexec",)), "Mininet", "not found: the program mnexec", "apt-get install"),
        (_Other(mininet="missing"), "Mininet", "not found: the Python package", "mininet"),
        (_Other(lacks=("iperf3",)), "iperf3", "not installed", "iperf3"),
        (_Other(import_error="No module named 'os_ken'"), "controller", "No module named 'os_ken'", "pip install"),
        (_Other(failures={"veth": "Operation not supported"}), "veth", "Operation not supported", "modprobe veth"),
        (_Other(failures={"shaping": "no htb"}), "shaping", "HTB with a byte-limited FIFO: no htb", "modprobe sch_htb"),
        (_Other(failures={"tmpfs": "denied"}), "tmpfs", "denied", "docker run --privileged"),
        (_Other(files={CONGESTION_CONTROL: "reno"}), "memory", "0 B available; a run needs 1 GiB", "larger machine"),
        (_Other(free_disk=1 << 20), "disk", "1 MiB free here; a run needs 500 MiB", "--out"),
    ],
)
def test_what_a_lab_needs(machine: Machine, name: str, detail: str, fix: str) -> None:
    check = failed(machine)[name]
    assert check.required
    assert detail in check.detail
    assert fix in check.fix
    assert "\n" not in check.fix


@pytest.mark.parametrize(
    ("machine", "name", "fix"),
    [
        (_Other(datapath="user"), "datapath", "modprobe openvswitch"),
        (_Other(lacks=("tcpdump",)), "tcpdump", "apt-get install"),
        (_Other(lacks=("ethtool",)), "ethtool", "apt-get install"),
        (_Other(failures={"delay": "no netem"}), "delay", "modprobe sch_netem"),
        (_Other(failures={"buffers": "denied"}), "buffers", "CAP_SYS_PTRACE"),
        (_Other(processors=1), "processors", "2 or more"),
    ],
)
def test_what_a_lab_can_do_without(machine: Machine, name: str, fix: str) -> None:
    check = failed(machine)[name]
    assert not check.required
    assert fix in check.fix


def test_only_cubic_is_needed_of_the_congestion_controls() -> None:
    without_bbr = failed(_Other(files={CONGESTION_CONTROL: "reno cubic", "/proc/meminfo": MEMORY}))
    assert not without_bbr["congestion control"].required
    assert without_bbr["congestion control"].fix.startswith("modprobe tcp_bbr")
    without_cubic = failed(_Other(files={CONGESTION_CONTROL: "reno bbr", "/proc/meminfo": MEMORY}))
    assert without_cubic["congestion control"].required


@pytest.mark.parametrize(
    ("listed", "fix"),
    [
        (
            "kernel/net/openvswitch/openvswitch.ko.xz: kernel/net/nsh.ko.xz\nkernel/net/sched/sch-netem.ko:",
            "modprobe {}",
        ),
        ("kernel/net/nsh.ko:", "a kernel with {}: Debian's"),
        ("", "modprobe {} on the machine whose kernel this is"),
    ],
)
def test_a_module_is_loaded_only_where_the_kernel_has_it(listed: str, fix: str) -> None:
    files = {"/proc/meminfo": MEMORY, f"/lib/modules/{platform.release()}/modules.dep": listed}
    found = failed(_Other(datapath="user", failures={"delay": "no netem"}, files=files))
    for name, module in (("datapath", "openvswitch"), ("delay", "sch_netem")):
        assert found[name].fix.startswith(fix.format(module))
        assert not found[name].required
    assert "only with delay: best-effort" in found["delay"].fix


def test_which_datapath_labs_take_is_told() -> None:
    (datapath,) = (check for check in examine(_Other()) if check.name == "datapath")
    assert (datapath.ok, datapath.detail) == (True, "the kernel's: the openvswitch module is loaded")
    assert failed(_Other(datapath="user"))["datapath"].detail.startswith("userspace: ")


def test_a_user_is_told_to_use_sudo_and_nothing_is_tried() -> None:
    found = failed(_Other(root=False))
    assert found["privileges"].fix == "run emu with sudo"
    assert {found[name].fix for name in PROBES} == {"sudo emu doctor"}


def test_namespaces_that_cannot_be_made_fail_with_the_kernels_words() -> None:
    found = failed(_Other(no_namespaces="unshare: unshare failed: Operation not permitted"))
    assert set(found) == set(PROBES)
    assert "Operation not permitted" in found["namespaces"].detail
    assert "virtual machine" in found["namespaces"].fix


def test_whatever_a_probe_raises_is_what_it_found() -> None:
    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    assert attempt(refuse) == "PermissionError: [Errno 1] Operation not permitted"
    assert attempt(lambda: None) == ""


@pytest.mark.lab
def test_this_machine_can_run_labs_and_is_asked_quickly_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make namespaces")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # as sudo leaves it; a probe once waited for ever then
    before, began = _traces(), _processor_seconds()
    checks = examine()
    assert _processor_seconds() - began < 4  # of wall time, other programs take their share
    assert [check for check in checks if check.required and not check.ok] == []
    assert _traces() == before


def _processor_seconds() -> float:
    """What this process and those that it waited for have used."""
    return sum(os.times()[:4])


def _traces() -> tuple[set[str], str]:
    """What the probes could leave behind: interfaces and mounts."""
    return set(os.listdir("/sys/class/net")), Path("/proc/mounts").read_text()
