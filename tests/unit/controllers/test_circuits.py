"""Circuits as people write them, and what differs between epochs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.circuits import check_epoch, check_matching, darkened, epoch, lit, resolve, with_dark
from controllers.epochs import Circuit, CircuitError, Epoch, Matching, duplex
from topologies.fabric import Fabric, Kind, Port
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid

FABRIC = hybrid()  # ToR i has OCS ports 2i+1 and 2i+2, by its own ports 5 and 6


def test_nth_circuit_of_a_tor_takes_its_nth_uplink() -> None:
    assert resolve(FABRIC, "o0", ["t0-t1", "t0-t2", "t1 - t3"]) == duplex([(1, 3), (2, 5), (4, 7)])


def test_switch_ports_and_ocs_ports() -> None:
    assert resolve(FABRIC, "o0", ["t0:6-t1:5", " 5-8 "]) == duplex([(2, 3), (5, 8)])


def test_bare_names_pass_over_ports_that_are_claimed() -> None:
    assert resolve(FABRIC, "o0", ["t0-t1", "t0:5-t2", "3-7"]) == duplex([(2, 4), (1, 5), (3, 7)])


def test_nothing_is_all_dark() -> None:
    assert resolve(FABRIC, "o0", []) == frozenset()


def test_uplinks_count_in_the_order_of_the_switch() -> None:
    fabric = Fabric("crossed")
    fabric.add_switch("o0", Kind.OCS)
    for tor in ("t0", "t1"):
        fabric.add_switch(tor, Kind.TOR)
    for a, b in [("t0", 2), ("t0", 1), ("t1", 1)]:
        fabric.connect(Port(a, b), fabric.next_port("o0"), rate=1)
    assert resolve(fabric, "o0", ["t0-t1"]) == duplex([(2, 3)])


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["t0"], r"o0: 't0' is not a circuit; write t0-t1 \(switches\)"),
        (["t0-t1-t2"], "is not a circuit"),
        (["t0-3"], "is not a circuit"),
        (["t0-t9"], "o0: 't9' is not wired to it; t0, t1, t2, t3 are"),
        (["t0-h1"], "'h1' is not wired to it"),
        (["t0:4-t1:5"], "o0: t0:4 is not wired to it; of t0 its ports 5, 6 are"),
        (["1-9"], "o0 has no port 9; wired are 1, 2, 3, 4, 5, 6, 7, 8"),
        (["3-3"], "joins a port to itself"),
        (["t2-t2"], "joins t2 to itself"),
        (["1-3", "3-5"], "o0: port 3 is used more than one circuit"),
        (["t0-t1", "t0-t2", "t0-t3"], "o0: more circuits name t0 than the 2 uplinks that it has there"),
    ],
)
def test_what_cannot_be_wired_is_refused(pairs: list[str], words: str) -> None:
    with pytest.raises(CircuitError, match=words):
        resolve(FABRIC, "o0", pairs)


def test_epoch_resolves_every_ocs() -> None:
    made = epoch(FABRIC, 3, {"o0": ["t0-t1"]})
    assert made == Epoch(3, {"o0": duplex([(1, 3)])})


@pytest.mark.parametrize(("fabric", "words"), [(FABRIC, "no OCS 't0'; it has o0"), (fat_tree(k=2), "it has none")])
def test_epoch_names_the_ocses_there_are(fabric: Fabric, words: str) -> None:
    with pytest.raises(CircuitError, match=words):
        epoch(fabric, 0, {"t0": []})


@pytest.mark.parametrize(
    ("circuits", "words"),
    [
        ([(1, 9)], "o0 has no port 9"),
        ([(2, 2)], "joins port 2 to itself"),
        ([(1, 3), (1, 4)], "port 1 is the entry of more than one circuit"),
        ([(1, 3), (2, 3)], "port 3 is the exit of more than one circuit"),
    ],
)
def test_matchings_that_an_ocs_cannot_hold(circuits: list[tuple[int, int]], words: str) -> None:
    matching = frozenset(Circuit(*circuit) for circuit in circuits)
    with pytest.raises(CircuitError, match=words):
        check_matching(FABRIC, "o0", matching)
    with pytest.raises(CircuitError, match=words):
        check_epoch(FABRIC, Epoch(0, {"o0": matching}))


def test_one_way_circuits_are_fine() -> None:
    check_matching(FABRIC, "o0", frozenset({Circuit(1, 3), Circuit(3, 5), Circuit(5, 1)}))


def test_only_circuits_that_change_go_dark() -> None:
    old = epoch(FABRIC, 0, {"o0": ["1-3", "5-7"]})
    new = epoch(FABRIC, 1, {"o0": ["1-3", "5-8"]})
    assert darkened(old, new) == {"o0": duplex([(5, 7)])}
    assert lit(old, new) == {"o0": duplex([(5, 8)])}
    assert with_dark(old, new) == Epoch(0, {"o0": duplex([(1, 3)])})


def test_an_ocs_that_one_epoch_does_not_name_is_dark_there() -> None:
    old, new = Epoch(0), epoch(FABRIC, 1, {"o0": ["1-3"]})
    assert darkened(old, new) == {}
    assert lit(old, new) == {"o0": duplex([(1, 3)])}
    assert darkened(new, old) == {"o0": duplex([(1, 3)])}
    assert with_dark(new, old).circuits("o0") == frozenset()


def matchings() -> st.SearchStrategy[Matching]:
    """Any one-way matching of ports 1 to 8, those to themselves left out."""
    return st.permutations(range(1, 9)).map(
        lambda exits: frozenset(Circuit(i, o) for i, o in enumerate(exits, start=1) if i != o)
    )


@given(matchings(), matchings())
def test_dark_and_lit_lead_from_old_to_new(first: Matching, second: Matching) -> None:
    old, new = Epoch(0, {"o0": first}), Epoch(1, {"o0": second})
    check_epoch(FABRIC, old)
    between = with_dark(old, new).circuits("o0")
    assert first - darkened(old, new).get("o0", frozenset()) == between
    assert between | lit(old, new).get("o0", frozenset()) == second
