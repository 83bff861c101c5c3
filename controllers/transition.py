"""From one set of tables to the next, as what goes dark first and what is lit afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.channel import RuleChange
from controllers.tables import Table, Tables


@dataclass(frozen=True, slots=True)
class Transition:
    """The two stages of a change of epoch, by datapath id, switches that do not change left out.

    dark: the circuits that go. light: the circuits that come, and the packet switches' routes over them. Until then
    routes keep pointing at the dark ports, where packets are lost.
    """

    dark: dict[int, RuleChange]
    light: dict[int, RuleChange]


def transition(old: Tables, new: Tables, optical: frozenset[str], dpids: Mapping[str, int]) -> Transition:
    """What turns the tables `old` into `new`.

    optical: the names of the OCSes; their old rules go in the dark stage, those that both have are never touched.
    dpids: the datapath id of every switch.
    """
    dark: dict[int, RuleChange] = {}
    light: dict[int, RuleChange] = {}
    for switch in dict.fromkeys((*old, *new)):
        gone, come = _difference(old.get(switch, ()), new.get(switch, ()))
        if switch in optical:
            if gone:
                dark[dpids[switch]] = RuleChange(delete=gone)
            gone = ()
        if gone or come:
            light[dpids[switch]] = RuleChange(delete=gone, add=come)
    return Transition(dark, light)


def _difference(old: Table, new: Table) -> tuple[Table, Table]:
    keep = set(old) & set(new)
    return tuple(rule for rule in old if rule not in keep), tuple(rule for rule in new if rule not in keep)
