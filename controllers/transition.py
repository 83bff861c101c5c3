"""From one set of tables to the next, as what goes dark first and what is lit afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.channel import RuleChange
from controllers.tables import Table, Tables


@dataclass(frozen=True, slots=True)
class Transition:
    """The stages of a change of epoch, by datapath id, switches that do not change left out.

    dark: the circuits that go. light: the circuits that come, and the packet switches' routes over them. detour: what
    packet switches change before the circuits go dark; without, routes keep pointing at the dark ports until LIGHT.
    """

    dark: dict[int, RuleChange]
    light: dict[int, RuleChange]
    detour: dict[int, RuleChange] = field(default_factory=dict)


def transition(
    old: Tables,
    new: Tables,
    optical: frozenset[str],
    dpids: Mapping[str, int],
    between: Tables | None = None,
) -> Transition:
    """What turns the tables `old` into `new`.

    optical: the names of the OCSes; their old rules go in the dark stage, those that both have are never touched.
    dpids: the datapath id of every switch. between: the packet switches' tables while circuits are dark, None: `old`.
    """
    step = Transition({}, {})
    for switch in dict.fromkeys((*old, *new)):
        table, dpid = old.get(switch, ()), dpids[switch]
        if switch not in optical and between is not None:
            gone, come = _difference(table, between.get(switch, ()))
            if gone or come:
                step.detour[dpid] = RuleChange(delete=gone, add=come)
            table = between.get(switch, ())
        gone, come = _difference(table, new.get(switch, ()))
        if switch in optical:
            if gone:
                step.dark[dpid] = RuleChange(delete=gone)
            gone = ()
        if gone or come:
            step.light[dpid] = RuleChange(delete=gone, add=come)
    return step


def _difference(old: Table, new: Table) -> tuple[Table, Table]:
    keep = set(old) & set(new)
    return tuple(rule for rule in old if rule not in keep), tuple(rule for rule in new if rule not in keep)
