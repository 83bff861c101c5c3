"""What switches should hold: applying changes, and going back from wherever a change was stopped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.channel import FlowCount, Flows, RuleChange
from controllers.ofp.state import applied, difference, key, keyed, undoing
from controllers.tables import Rule, Table

A, B, C = Rule(10, 2, in_port=1), Rule(10, 3, in_port=1), Rule(10, 1, in_port=2)
ROUTE = Rule(10, 1, destination=0x0A000000, mask=0xFF000000)


def held(table: Table) -> frozenset[Rule]:
    """A table as a switch sees it: without an order."""
    return frozenset(table)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Tables of up to five entries over few matches, so that changes overlap."""
    entries = draw(st.dictionaries(st.integers(1, 5), st.integers(1, 3), max_size=5))
    return tuple(Rule(10, out, in_port=entry) for entry, out in entries.items())


@st.composite
def journeys(draw: st.DrawFn) -> tuple[Table, RuleChange, RuleChange]:
    """A table and two changes of it in a row."""
    table = draw(tables())
    dark = RuleChange(delete=tuple(rule for rule in table if draw(st.booleans())), add=draw(tables()))
    middle = applied(table, dark)
    light = RuleChange(delete=tuple(rule for rule in middle if draw(st.booleans())), add=draw(tables()))
    return table, dark, light


def patched(table: Table, change: RuleChange) -> Table:
    """What a switch makes of a change: deleting what is not there is no error for it."""
    entries = {key(rule): rule for rule in table}
    for rule in change.delete:
        entries.pop(key(rule), None)
    entries.update({key(rule): rule for rule in change.add})
    return tuple(entries.values())


def test_a_change_deletes_then_adds() -> None:
    """Adding replaces the rule of the same match and priority; another priority is another entry."""
    assert held(applied((A, C), RuleChange(delete=(A,), add=(B,)))) == {B, C}
    assert held(applied((A,), RuleChange(add=(B,)))) == {B}
    other = Rule(11, 3, in_port=1)
    assert held(applied((A,), RuleChange(add=(other,)))) == {A, other}


def test_deleting_what_is_not_held_is_refused() -> None:
    """Also when an entry of the same match leads elsewhere: the caller is wrong about the switch."""
    for table in ((), (B,)):
        with pytest.raises(ValueError, match="the switch does not hold it"):
            applied(table, RuleChange(delete=(A,)))


def test_two_rules_for_one_entry_are_refused() -> None:
    """An OCS rule's mask means nothing, a route's does."""
    with pytest.raises(ValueError, match="the same match and priority"):
        keyed((A, B))
    with pytest.raises(ValueError, match="the same match and priority"):
        keyed((A, Rule(10, 2, in_port=1, mask=0)))
    assert len(keyed((ROUTE, Rule(10, 1, destination=0x0A000000, mask=0xFFFF0000)))) == 2


@given(journeys())
def test_undoing_goes_back_from_every_point(journey: tuple[Table, RuleChange, RuleChange]) -> None:
    """Stopped before DARK, after it or after LIGHT, the restore bundle ends in the old table."""
    table, dark, light = journey
    middle = applied(table, dark)
    undo = undoing(table, dark, light)
    for now in (table, middle, applied(middle, light)):
        assert held(patched(now, undo)) == held(table)


@given(journeys())
def test_undoing_touches_nothing_else(journey: tuple[Table, RuleChange, RuleChange]) -> None:
    """Circuits that neither stage names are not in the restore bundle: their counters go on."""
    table, dark, light = journey
    named = {key(rule) for change in (dark, light) for rule in (*change.delete, *change.add)}
    undo = undoing(table, dark, light)
    assert {key(rule) for rule in (*undo.delete, *undo.add)} <= named


def test_differences_are_named() -> None:
    """Missing rules, rules too many and foreign entries each say an example; nothing is said of equal tables."""
    flows = Flows(1, (FlowCount(B, 5, 300), FlowCount(C, 0, 0)), ("table 0, priority 99",))
    assert difference((B, C), Flows(1, flows.flows)) == ""
    said = difference((A, C), flows)
    assert f"1 rules missing, such as {A}" in said
    assert f"1 rules too many, such as {B}" in said
    assert "1 entries that were not installed from here, such as: table 0, priority 99" in said
