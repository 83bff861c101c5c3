"""`dark: detour`: traffic leaves its circuit before that goes dark, crosses the core, and comes back to the new one."""

from __future__ import annotations

import pytest

from tests.lab.dark.change import DARK, SWAPPED, play
from tests.lab.topologies.bench import Bench, on_bench
from topologies.fabric import Port

pytestmark = pytest.mark.lab

OLD, NEW, CORE = Port("o0", 3), Port("o0", 4), Port("c0", 2)
"""Where the flow's frames leave: the old circuit, the new one, and the core switch towards t1."""
IN_SWITCH = 5
"""Frames that may be inside a switch of a loaded machine whenever a change's own books are read."""


@on_bench(**SWAPPED, electrical_rate="50Mbps", dark="detour")
def test_a_detour_loses_nothing_and_comes_back(bench: Bench) -> None:
    seen = play(bench)
    change = seen.change
    assert change.mode == "detour"
    assert seen.after.dark_drops == seen.before.dark_drops
    assert change.lost is not None
    assert change.lost <= IN_SWITCH
    old, core, new = (seen.data(port) for port in (OLD, CORE, NEW))
    lit = min(frame.at_ns for frame in new)
    assert max(frame.at_ns for frame in old) < lit
    in_the_dark = [frame.at_ns for frame in core if max(frame.at_ns for frame in old) < frame.at_ns < lit]
    assert (max(in_the_dark) - min(in_the_dark)) / 1e9 > 0.8 * DARK
    assert len(in_the_dark) > 20
    assert old
    assert new
    assert change.service_dark is not None
    assert change.service_dark < 0.5 * DARK


@on_bench(**SWAPPED, electrical_rate="50Mbps", dark="detour")
def test_a_detour_duplicates_nothing_and_its_way_back_overtakes(bench: Bench) -> None:
    """What hosts sent is what they were sent. The core's queue is overtaken on the new circuit, which TCP counts."""
    seen = play(bench)
    hosts = bench.fabric.all_nics
    assert seen.sent(*hosts) == seen.sent(*map(bench.fabric.peer, hosts))
    assert seen.change.out_of_order is not None
    assert seen.change.reordered is not None
    assert seen.change.out_of_order > 0
    assert seen.change.reordered > 0
    assert bench.lab.control.foreign_rules() == []
