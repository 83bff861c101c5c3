"""What the switches should hold, and how changes act on that. Pure data: no switch is asked, no library is needed."""

from __future__ import annotations

from typing import NamedTuple

from controllers.channel import Flows, RuleChange
from controllers.tables import Rule, Table


class RuleKey(NamedTuple):
    """What makes two rules one entry of a switch: the match and the priority."""

    priority: int
    destination: int | None
    mask: int
    in_port: int | None


def key(rule: Rule) -> RuleKey:
    """The entry that a rule occupies; rules that match the port of entry have no mask."""
    return RuleKey(rule.priority, rule.destination, 0 if rule.in_port is not None else rule.mask, rule.in_port)


def keyed(table: Table) -> dict[RuleKey, Rule]:
    """A table by entry. Raises ValueError if two rules claim one."""
    entries: dict[RuleKey, Rule] = {}
    for rule in table:
        other = entries.setdefault(key(rule), rule)
        if other is not rule:
            raise ValueError(f"{other} and {rule} have the same match and priority")
    return entries


def applied(table: Table, change: RuleChange) -> Table:
    """The table after a change. Raises ValueError if it deletes a rule that is not there."""
    entries, unwanted = keyed(table), keyed(change.delete)
    for entry, rule in unwanted.items():
        if entries.pop(entry, None) != rule:
            raise ValueError(f"{rule} cannot be deleted: the switch does not hold it")
    return tuple({**entries, **keyed(change.add)}.values())


def undoing(table: Table, *changes: RuleChange) -> RuleChange:
    """The change that brings a switch back to `table`, whichever of `changes` it has made since, or none."""
    old = keyed(table)
    touched = {key(rule): rule for change in changes for rule in (*change.delete, *change.add)}
    new = tuple(rule for entry, rule in touched.items() if entry not in old)
    return RuleChange(delete=new, add=tuple(old[entry] for entry in touched if entry in old))


def difference(table: Table, flows: Flows) -> str:
    """How what a switch holds differs from its table; empty if it does not."""
    asked, held = set(table), {flow.rule for flow in flows.flows}
    parts = []
    if missing := asked - held:
        parts.append(f"{len(missing)} rules missing, such as {min(missing, key=repr)}")
    if extra := held - asked:
        parts.append(f"{len(extra)} rules too many, such as {min(extra, key=repr)}")
    if flows.foreign:
        parts.append(f"{len(flows.foreign)} entries that were not installed from here, such as: {flows.foreign[0]}")
    return "; ".join(parts)
