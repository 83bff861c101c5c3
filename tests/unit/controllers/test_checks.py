"""Faults seeded into good tables are found, and named."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import Finding, TableError, check, verify
from controllers.circuits import epoch
from controllers.epochs import Epoch
from controllers.paths import LitGraph
from controllers.routes import path, routes
from controllers.tables import Rule, Tables, address_number
from topologies.fabric import Fabric, Kind, Port
from topologies.fat_tree import fat_tree
from topologies.hybrid import hybrid

DARK = Epoch()
ALL = 0xFFFF_FFFF


def spoiled(tables: Tables, switch: str, *add: Rule, drop: Iterable[Rule] = ()) -> dict[str, tuple[Rule, ...]]:
    """The tables with rules added to and dropped from one switch."""
    rules = [rule for rule in tables[switch] if rule not in drop] + list(add)
    return {**tables, switch: tuple(sorted(rules, key=lambda rule: -rule.priority))}


def only(findings: list[Finding], kind: str) -> Finding:
    assert [finding.kind for finding in findings] == [kind], [str(finding) for finding in findings]
    return findings[0]


def to(address: str, port: int, priority: int = 500) -> Rule:
    return Rule(priority, port, address_number(address))


def test_good_tables_pass() -> None:
    fabric = fat_tree(k=4)
    verify(fabric, DARK, routes(fabric, DARK))


def test_loop_is_found_with_its_way() -> None:
    fabric = fat_tree(k=4)
    # h15 is 10.3.1.3. t0 -> a0 -> t1 -> a1 -> t0 goes round by four cables.
    tables: Tables = routes(fabric, DARK)
    for switch, port in [("t0", 3), ("a0", 2), ("t1", 4), ("a1", 1)]:
        tables = spoiled(tables, switch, to("10.3.1.3", port))
    found = only(check(fabric, DARK, tables), "loop")
    assert "(a0 -> t1 -> a1 -> t0 -> a0)" in found.message
    assert "10.3.1.3" in found.message
    assert found.pair == (Port("h0", 0), Port("h15", 0))
    assert found.pairs == 4  # h0 to h3
    assert found.rule == to("10.3.1.3", 2)
    assert path(fabric, tables, Port("h0", 0), Port("h15", 0)) is None


def test_loop_that_no_host_enters_is_found() -> None:
    fabric = Fabric("spare ring")
    fabric.add_switch("t0", Kind.TOR)
    for host in ("h0", "h1"):
        fabric.add_host(host)
        fabric.connect(Port(host, 0), fabric.next_port("t0"), rate=1)
    for switch in ("s0", "s1", "s2"):
        fabric.add_switch(switch, Kind.EPS)
    for a, b in [("s0", "s1"), ("s1", "s2"), ("s2", "s0"), ("s0", "t0")]:
        fabric.connect(fabric.next_port(a), fabric.next_port(b), rate=1)
    fabric.finish()
    tables: Tables = routes(fabric, DARK)
    address = fabric.address(Port("h1", 0))
    for switch, port in [("s0", 1), ("s1", 2), ("s2", 2)]:
        tables = spoiled(tables, switch, to(address, port))
    found = only(check(fabric, DARK, tables), "loop")
    assert (found.pair, found.pairs) == (None, 0)
    assert "(s0 -> s1 -> s2 -> s0)" in found.message


def test_two_switches_that_send_back_drop_and_do_not_loop() -> None:
    fabric = fat_tree(k=4)
    tables = spoiled(routes(fabric, DARK), "a0", to("10.3.1.2", 1))  # from t0 straight back to t0
    # Packets from t0's hosts end at a0; those from t1's get as far as t0, which would send them back up.
    findings = check(fabric, DARK, tables)
    assert [(found.kind, found.switch, found.pairs) for found in findings] == [
        ("black-hole", n, 2) for n in ("a0", "t0")
    ]
    assert path(fabric, tables, Port("h0", 0), Port("h14", 0)) is None


def test_missing_rule_is_a_black_hole() -> None:
    fabric = fat_tree(k=4)
    tables = routes(fabric, DARK)
    lost = next(rule for rule in tables["c0"] if rule.out_port == 4)
    found = only(check(fabric, DARK, spoiled(tables, "c0", drop=[lost])), "black-hole")
    # c0 carries 10.3.0.2 (h12) alone into pod 3, from the twelve hosts of the other pods.
    assert found.message == (
        "c0: having no rule drops packets for 10.3.0.2, though there is a path, for example from h0:0 to h12:0"
    )
    assert found.pairs == 12


def test_empty_tables_hit_every_pair_and_verify_says_so() -> None:
    fabric = fat_tree(k=4)
    findings = check(fabric, DARK, {})
    assert sum(finding.pairs for finding in findings) == 16 * 15
    with pytest.raises(TableError, match=r"t0: having no rule drops.*; and 3 more"):
        verify(fabric, DARK, {})


def test_wrong_nic_is_found() -> None:
    fabric = fat_tree(k=4)
    tables = spoiled(routes(fabric, DARK), "t0", to("10.0.0.3", 1))  # h1's address to h0's port
    findings = check(fabric, DARK, tables)
    wrong = next(finding for finding in findings if finding.kind == "wrong-delivery")
    assert "10.0.0.3 to h0:0" in wrong.message
    assert wrong.pairs == 14
    assert [finding.kind for finding in findings if finding is not wrong] == ["black-hole"]  # h0 itself


def test_other_nic_of_the_right_host_is_wrong_too() -> None:
    fabric = hybrid(nics=2)
    tables = spoiled(routes(fabric, DARK), "t0", to(fabric.address(Port("h1", 1)), 3))
    assert only(check(fabric, DARK, tables), "wrong-delivery").rule == to(fabric.address(Port("h1", 1)), 3)


def test_unwired_ports_and_unknown_switches() -> None:
    fabric = fat_tree(k=4, hosts=5)
    tables = spoiled(routes(fabric, DARK), "t2", to("10.9.9.9", 2))
    assert "t2: rule [10.9.9.9/255.255.255.255 -> port 2]" in only(check(fabric, DARK, tables), "unwired-port").message
    extra = {**routes(fabric, DARK), "t9": ()}
    assert only(check(fabric, DARK, extra), "unwired-port").switch == "t9"


@pytest.mark.parametrize(
    ("rule", "conflicts"),
    [
        (to("10.0.0.2", 2, priority=300), True),  # same match, another port
        (to("10.0.0.2", 1, priority=300), False),  # says the same again
        (to("10.0.0.2", 2, priority=299), False),  # never asked
        (Rule(100, 1, 0x0A00_0000, 0xFF00_0000), True),  # overlaps the suffixes of its priority
        (Rule(100, 1, 9, 0xFF), False),  # an id that no other rule has
    ],
)
def test_rules_of_one_priority_must_agree(rule: Rule, conflicts: bool) -> None:
    fabric = fat_tree(k=4)
    findings = check(fabric, DARK, spoiled(routes(fabric, DARK), "t0", rule))
    kinds = {finding.kind for finding in findings}
    assert ("conflict" in kinds) == conflicts, [str(finding) for finding in findings]


def test_ocs_table_must_be_the_matching() -> None:
    fabric = hybrid()
    lit, other = epoch(fabric, 1, {"o0": ["1-3"]}), epoch(fabric, 2, {"o0": ["1-4"]})
    findings = check(fabric, lit, {**routes(fabric, lit), "o0": routes(fabric, other)["o0"]})
    texts = [finding.message for finding in findings if finding.kind == "circuit"]
    assert texts == [
        "o0: no rule for the circuit 1->3 of epoch 1",
        "o0: no rule for the circuit 3->1 of epoch 1",
        "o0: rule [in port 1 -> port 4] is no circuit of epoch 1",
        "o0: rule [in port 4 -> port 1] is no circuit of epoch 1",
    ]


def test_missing_circuit_shows_as_black_hole() -> None:
    fabric = hybrid()
    lit = epoch(fabric, 0, {"o0": ["t0-t1"]})
    findings = check(fabric, lit, {**routes(fabric, lit), "o0": ()})
    assert {(finding.kind, finding.switch) for finding in findings if finding.kind != "circuit"} == {
        ("black-hole", "t0"),
        ("black-hole", "t1"),
    }


def test_circuits_that_meet_conflict() -> None:
    fabric = hybrid()
    lit = epoch(fabric, 0, {"o0": ["1-3"]})
    tables = spoiled(routes(fabric, lit), "o0", Rule(300, 3, in_port=5))
    assert {finding.kind for finding in check(fabric, lit, tables)} == {"conflict", "circuit"}


@pytest.mark.parametrize(
    ("switch", "rule"),
    [
        ("o0", Rule(1, 1, 0x0909_0909)),
        ("t0", Rule(1, 1, in_port=2)),
        ("o0", Rule(1, 1, 0x0909_0909, in_port=2)),
        ("t0", Rule(1, 1)),
    ],
)
def test_matches_that_a_switch_cannot_make(switch: str, rule: Rule) -> None:
    fabric = hybrid()
    tables = spoiled(routes(fabric, DARK), switch, rule)
    assert "misplaced" in {finding.kind for finding in check(fabric, DARK, tables)}


def test_isolated_pairs_are_no_fault() -> None:
    fabric = hybrid()
    assert check(fabric, DARK, routes(fabric, DARK)) == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_check_finds_exactly_the_pairs_that_packets_miss(data: st.DataObject) -> None:
    """Random next hops: summed over findings, the pairs hit are those that following every pair finds."""
    fabric = hybrid(pods=4, hosts_per_pod=1, electrical_rate=1)
    lit = epoch(fabric, 0, {"o0": ["t0-t1", "t1-t2", "t2-t3"]})
    tables: Tables = routes(fabric, lit)
    for _ in range(data.draw(st.integers(1, 4))):
        switch = data.draw(st.sampled_from([node.name for node in fabric.switches]))
        port = data.draw(st.sampled_from(fabric.ports(switch)))
        nic = data.draw(st.sampled_from(fabric.all_nics))
        address = address_number(fabric.address(nic))
        old = [rule for rule in tables[switch] if rule.destination == address]
        tables = spoiled(tables, switch, Rule(500, port.number, address, ALL), drop=old)
    graph = LitGraph(fabric, lit)
    nics = fabric.all_nics
    missed = [
        (a, b) for a in nics for b in nics if a != b and graph.reaches(a, b) and path(fabric, tables, a, b) is None
    ]
    findings = check(fabric, lit, tables)
    assert sum(finding.pairs for finding in findings) == len(missed)
    assert all(finding.pair in missed for finding in findings if finding.pair is not None)
