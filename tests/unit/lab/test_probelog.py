"""Which circuits are probed, and what probes say: pieces that need no lab."""

from __future__ import annotations

import pytest

from controllers.channel import Committed, Staged, Stamps
from controllers.epochs import Circuit, Epoch, Matching, duplex
from emu.lab.probelog import PATIENCE_NS, ProbeLog, Stream, judge_probes, streams
from topologies.fabric import Fabric, Kind, Port

MS = 1_000_000
O0, O1 = 8, 9
"""Datapath ids."""


def two_ocses() -> Fabric:
    """Four ToRs, each with one port into each of two OCSes."""
    fabric = Fabric("two")
    for ocs in ("o0", "o1"):
        fabric.add_switch(ocs, Kind.OCS)
    for tor in range(4):
        fabric.add_switch(f"t{tor}", Kind.TOR)
        fabric.add_host(f"h{tor}")
        fabric.connect(Port(f"h{tor}", 0), Port(f"t{tor}", 1), rate=10**9)
        for number in range(2):
            fabric.connect(Port(f"t{tor}", 2 + number), Port(f"o{number}", tor + 1), rate=10**9)
    return fabric.finish()


def epoch(number: int, **matchings: Matching) -> Epoch:
    return Epoch(number, matchings)


# -- which circuits --------------------------------------------------------------------------------------------------


def test_a_port_whose_circuit_moves_is_probed_once_for_both() -> None:
    found = streams(two_ocses(), epoch(0, o0=duplex([(1, 2), (3, 4)])), epoch(1, o0=duplex([(1, 3), (2, 4)])))
    assert found == [Stream(Port("o0", 1), Port("o0", 2), Port("o0", 3))]


def test_every_ocs_that_changes_is_probed_and_no_other() -> None:
    old = epoch(0, o0=duplex([(1, 2)]), o1=duplex([(1, 2)]))
    assert streams(two_ocses(), old, epoch(1, o0=duplex([(1, 2)]), o1=duplex([(1, 4)]))) == [
        Stream(Port("o1", 1), Port("o1", 2), Port("o1", 4))
    ]
    assert streams(two_ocses(), old, epoch(1, o0=duplex([(1, 2)]), o1=duplex([(1, 2)]))) == []


def test_circuits_without_a_common_entry_are_probed_one_each() -> None:
    old, new = epoch(0, o0=duplex([(1, 2)])), epoch(1, o0=duplex([(3, 4)]))
    assert streams(two_ocses(), old, new) == [
        Stream(Port("o0", 1), Port("o0", 2), None),
        Stream(Port("o0", 3), None, Port("o0", 4)),
    ]


def test_what_only_goes_or_only_comes_is_probed_for_that() -> None:
    dark, one_way = epoch(0), epoch(1, o0=frozenset({Circuit(2, 3)}))
    assert streams(two_ocses(), dark, one_way) == [Stream(Port("o0", 2), None, Port("o0", 3))]
    assert streams(two_ocses(), one_way, dark) == [Stream(Port("o0", 2), Port("o0", 3), None)]


# -- what probes say -------------------------------------------------------------------------------------------------


def committed(dark_ns: int = 100 * MS, light_ns: int = 150 * MS, dpid: int = O0) -> Committed:
    """DARK sent at 100 ms and LIGHT at 150 ms unless told otherwise, each acknowledged 1 ms later."""
    stages = (("dark", dark_ns), ("light", light_ns))
    dark, light = (Staged("c", s, at, {dpid: Stamps(at, at + MS, optical=True)}) for s, at in stages)  # type: ignore[arg-type]
    return Committed("c", dark, light)


MOVED = Stream(Port("o0", 1), Port("o0", 2), Port("o0", 3))


def log(stream: Stream, *, old: range = range(0), new: range = range(0), count: int = 90, every: int = MS) -> ProbeLog:
    """Probes sent from 80 ms on, `every` so often; the numbers in `old` and `new` arrive there 0.2 ms later."""
    sent = ProbeLog(stream, [80 * MS + number * every for number in range(count)])
    for exit_, numbers in ((stream.old, old), (stream.new, new)):
        if exit_ is not None:
            sent.left[exit_] = {number: sent.at[number] + MS // 5 for number in numbers}
    return sent


def test_the_dark_time_is_between_the_frames_at_its_edges() -> None:
    """Probes 0 to 21 (80 to 101 ms) leave by the old circuit, 73 to 89 (153 ms on) by the new: 52 ms, TDF 5."""
    (plane,) = judge_probes([log(MOVED, old=range(22), new=range(73, 90))], committed(), {"o0": O0}, 5.0, in_vain=False)
    assert plane.dark == pytest.approx(0.052 / 5)
    assert plane.resolution_wall == pytest.approx(0.002)
    assert plane.last_wall == pytest.approx(0.0012)
    assert plane.first_wall == pytest.approx(0.0032)
    assert plane.problem == ""


def test_the_distance_of_probes_is_the_resolution() -> None:
    """One each 5 ms: the last at 100 ms, the first at 155 ms; each edge may be up to 5 ms further in."""
    sent = log(MOVED, old=range(5), new=range(15, 18), count=18, every=5 * MS)
    (plane,) = judge_probes([sent], committed(), {"o0": O0}, 1.0, in_vain=False)
    assert (plane.dark, plane.resolution_wall) == pytest.approx((0.055, 0.010))


def test_two_streams_of_one_ocs_make_one_figure() -> None:
    gone, come = Stream(Port("o0", 1), Port("o0", 2), None), Stream(Port("o0", 3), None, Port("o0", 4))
    sent = [log(gone, old=range(22)), log(come, new=range(73, 90))]
    (plane,) = judge_probes(sent, committed(), {"o0": O0}, 1.0, in_vain=False)
    assert plane.dark == pytest.approx(0.052)


def test_one_edge_alone_makes_no_figure() -> None:
    gone = Stream(Port("o0", 1), Port("o0", 2), None)
    (plane,) = judge_probes([log(gone, old=range(22))], committed(), {"o0": O0}, 1.0, in_vain=False)
    assert (plane.dark, plane.problem) == (None, "")


def test_every_ocs_is_judged_by_its_own_instants() -> None:
    other = Stream(Port("o1", 1), Port("o1", 2), Port("o1", 3))
    stamps = {O0: Stamps(100 * MS, 101 * MS, optical=True), O1: Stamps(99 * MS, 101 * MS, optical=True)}
    dark = Staged("c", "dark", 99 * MS, stamps)
    light = Staged("c", "light", 150 * MS, {dpid: Stamps(150 * MS, 151 * MS, optical=True) for dpid in (O0, O1)})
    sent = [log(MOVED, old=range(22), new=range(73, 90)), log(other, old=range(21), new=range(72, 90))]
    planes = judge_probes(sent, Committed("c", dark, light), {"o0": O0, "o1": O1}, 1.0, in_vain=False)
    assert [plane.ocs for plane in planes] == ["o0", "o1"]
    assert [plane.last_wall for plane in planes] == pytest.approx([0.0012, 0.0012])


def test_a_circuit_that_was_dark_before_is_named() -> None:
    (plane,) = judge_probes([log(MOVED, new=range(73, 90))], committed(), {"o0": O0}, 1.0, in_vain=False)
    assert (plane.dark, plane.problem) == (None, "no probe passed the circuit o0:1 -> o0:2 before it was to go dark")


def test_probes_that_began_too_late_blame_nobody() -> None:
    """The loop was held up, and the first probe went out when the circuit was dark already."""
    sent = log(MOVED, new=range(73, 90))
    sent.at = [at + 19 * MS for at in sent.at]
    (plane,) = judge_probes([sent], committed(), {"o0": O0}, 1.0, in_vain=False)
    assert (plane.dark, plane.problem) == (None, "")


def test_a_circuit_that_never_goes_dark_is_named() -> None:
    stream = Stream(Port("o0", 1), Port("o0", 2), None)
    (plane,) = judge_probes([log(stream, old=range(90))], committed(), {"o0": O0}, 1.0, in_vain=False)
    assert plane.problem == "probes never ceased to pass the circuit o0:1 -> o0:2, which was to go dark"


@pytest.mark.parametrize("in_vain", [True, False])
def test_a_circuit_that_is_never_lit_is_named_once_patience_is_over(in_vain: bool) -> None:
    (plane,) = judge_probes([log(MOVED, old=range(22))], committed(), {"o0": O0}, 1.0, in_vain=in_vain)
    assert plane.dark is None
    within = f"within {PATIENCE_NS // MS} ms after it was acknowledged"
    assert plane.problem == (f"no probe passed the new circuit o0:1 -> o0:3 {within}" if in_vain else "")
