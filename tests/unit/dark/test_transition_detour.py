"""A change of epoch with a detour: three stages whose sum is the change, and whose middle is the detour."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controllers.circuits import with_dark
from controllers.dark import cut_off
from controllers.epochs import Epoch, duplex
from controllers.ofp.state import applied
from controllers.routes import routes
from controllers.transition import transition
from topologies.hybrid import hybrid

FABRIC = hybrid(pods=4, hosts_per_pod=1, uplinks=1, electrical_rate=10**9)
DPIDS = {node.name: number for number, node in enumerate((*FABRIC.switches, *FABRIC.ocses), start=1)}
Pairs = list[tuple[int, int]]
MATCHINGS: list[Pairs] = [[(1, 2), (3, 4)], [(1, 3), (2, 4)], [(1, 4), (2, 3)], [(1, 2)], []]


@given(st.sampled_from(MATCHINGS), st.sampled_from(MATCHINGS))
def test_the_stages_lead_over_the_detour_to_the_new_tables(before: Pairs, after: Pairs) -> None:
    old, new = (Epoch(n, {"o0": duplex(pairs)}) for n, pairs in enumerate((before, after)))
    tables = [routes(FABRIC, epoch) for epoch in (old, with_dark(old, new), new)]
    step = transition(tables[0], tables[2], frozenset({"o0"}), DPIDS, tables[1])
    assert DPIDS["o0"] not in step.detour
    assert set(step.dark) <= {DPIDS["o0"]}
    for name, dpid in DPIDS.items():
        held = [tables[0][name]]
        for stage in (step.detour, step.dark, step.light):
            held.append(applied(held[-1], stage[dpid]) if dpid in stage else held[-1])
        middle = held[2]
        assert set(middle) == set(tables[1][name])
        assert set(held[3]) == set(tables[2][name])


def test_without_a_detour_packet_switches_wait_for_the_light() -> None:
    old, new = (Epoch(n, {"o0": duplex(pairs)}) for n, pairs in enumerate(MATCHINGS[:2]))
    step = transition(routes(FABRIC, old), routes(FABRIC, new), frozenset({"o0"}), DPIDS)
    assert step.detour == {}
    assert set(step.dark) == {DPIDS["o0"]}
    assert {DPIDS[f"t{tor}"] for tor in range(4)} <= set(step.light)


def test_a_pair_without_an_electrical_path_is_found() -> None:
    assert cut_off(FABRIC) is None
    bare = hybrid(pods=2, hosts_per_pod=1, uplinks=1)
    assert cut_off(bare) is not None
