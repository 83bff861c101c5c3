"""The proof of the wiring finds what is not wired as the fabric says."""

from __future__ import annotations

import pytest

from emu.lab.errors import LabError
from emu.lab.openvswitch import run
from emu.lab.wiring import verify_wiring
from tests.lab.topologies.bench import Bench, on_bench

pytestmark = pytest.mark.lab


def set_link(interface: str, *settings: str) -> None:
    """`ip link set` in the switches' namespace."""
    run("ip", "link", "set", interface, *settings)


def problem(bench: Bench) -> str:
    """What the proof says is wrong."""
    with pytest.raises(LabError) as found:
        verify_wiring(bench.fabric, bench.lab.ports)
    return str(found.value)


@on_bench(tables=False, kind="hybrid", pods=2, hosts_per_pod=2, rate="20Mbps", reconfiguration="10ms")
def test_cables_that_are_cut_or_swapped_are_named(bench: Bench) -> None:
    """Every end of every cable is probed: hosts, ToRs and the OCS."""
    assert verify_wiring(bench.fabric, bench.lab.ports) == 2 * len(bench.fabric.links) == 16
    set_link("t0-eth1", "down")
    cut = problem(bench)
    assert "2 of 16 probes did not arrive: h0:0 -> t0:1, t0:1 -> h0:0" in cut
    set_link("t0-eth1", "up")
    set_link("o0-eth1", "down")
    set_link("o0-eth1", "name", "spare")
    set_link("o0-eth2", "down")
    set_link("o0-eth2", "name", "o0-eth1")
    set_link("spare", "name", "o0-eth2")
    for interface in ("o0-eth1", "o0-eth2"):
        set_link(interface, "up")
    swapped = problem(bench)
    assert "4 of 16 probes did not arrive: o0:1 -> t0:3, o0:2 -> t0:4, t0:3 -> o0:1" in swapped
