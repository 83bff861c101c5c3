"""Are these tables safe and complete? Asked before they are installed, so that no packet has to find out.

A pair of NICs that neither wiring nor circuits connect is no error (see `routes.isolated_pairs`); a pair that they do
connect and the tables do not is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from itertools import combinations_with_replacement
from typing import Literal

from controllers.epochs import Circuit, Epoch
from controllers.flow_graph import Fate, Fates
from controllers.paths import Forwarder, LitGraph
from controllers.tables import Rule, Table, Tables
from topologies.fabric import Fabric, Kind, Port

FindingKind = Literal["loop", "black-hole", "wrong-delivery", "unwired-port", "conflict", "misplaced", "circuit"]
_SHOWN = 5


class TableError(ValueError):
    """Tables that must not be installed; the message names switches, rules and a pair of NICs that would suffer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a set of tables.

    switch, rule: where it is; no rule if one is missing.
    pair: a source and a destination NIC that it hits, if any traffic can.
    pairs: how many such pairs there are.
    """

    kind: FindingKind
    switch: str
    message: str
    rule: Rule | None = None
    pair: tuple[Port, Port] | None = None
    pairs: int = 0

    def __str__(self) -> str:
        return self.message


def check(fabric: Fabric, epoch: Epoch, tables: Tables) -> list[Finding]:
    """Every fault of the tables on this fabric while the epoch's circuits are lit; an empty list if there is none.

    loop: packets go in circles, whoever sends them. black-hole: a pair that links and circuits connect is not served.
    wrong-delivery: packets arrive at a NIC that does not own the address. unwired-port: a rule or table for something
    that is not there. conflict: rules of one priority that match the same packets and disagree, or circuits that meet
    in one exit. misplaced: a match that its switch cannot make (an OCS reads no addresses, a packet switch here no
    ports of entry). circuit: an OCS table that is not the epoch's matching.
    """
    findings = [*_check_rules(fabric, tables), *_check_circuits(fabric, epoch, tables)]
    return findings + _Destinations(LitGraph(fabric, epoch), Forwarder(fabric, tables)).findings()


def verify(fabric: Fabric, epoch: Epoch, tables: Tables) -> None:
    """Raise TableError, naming the first faults that `check` finds, unless there is none."""
    findings = check(fabric, epoch, tables)
    if findings:
        more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
        raise TableError("; ".join(map(str, findings[:_SHOWN])) + more)


# -- rules by themselves ----------------------------------------------------------------------------------------------


def _check_rules(fabric: Fabric, tables: Tables) -> Iterator[Finding]:
    optical = {node.name: not node.kind.electrical for node in (*fabric.switches, *fabric.ocses)}
    for switch, table in tables.items():
        if switch not in optical:
            yield Finding("unwired-port", switch, f"{switch}: a table for a switch that the fabric does not have")
            continue
        wired = {port.number for port in fabric.ports(switch)}
        for rule in table:
            if rule.out_port not in wired:
                text = f"{switch}: rule {describe(rule)} sends to a port without a cable"
                yield Finding("unwired-port", switch, text, rule)
            if optical[switch] != (rule.in_port is not None) or (rule.in_port is None) == (rule.destination is None):
                what = "the port of entry" if optical[switch] else "the destination"
                text = f"{switch}: rule {describe(rule)} must match {what} and nothing else"
                yield Finding("misplaced", switch, text, rule)
        for first, second in (*_conflicts(table), *(_collisions(table) if optical[switch] else ())):
            text = f"{switch}: rules {describe(first)} and {describe(second)} contradict each other"
            yield Finding("conflict", switch, text, first)


def _collisions(table: Table) -> Iterator[tuple[Rule, Rule]]:
    """Pairs of circuits that leave an OCS by one port."""
    first: dict[int, Rule] = {}
    for rule in table:
        met = first.setdefault(rule.out_port, rule)
        if met.in_port != rule.in_port:
            yield met, rule


def _conflicts(table: Table) -> Iterator[tuple[Rule, Rule]]:
    """Pairs of rules that disagree: for each later rule of an overlap the first one."""
    groups: dict[tuple[int, int | None], list[Rule]] = {}
    for rule in table:
        groups.setdefault((rule.priority, None if rule.destination is None else rule.mask), []).append(rule)
    for (priority, mask), (other_priority, other_mask) in combinations_with_replacement(groups, 2):
        if priority == other_priority and (mask is None) == (other_mask is None):
            yield from _overlaps(groups[priority, mask], groups[priority, other_mask])


def _overlaps(some: list[Rule], others: list[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Two rules overlap if they agree wherever both masks look; rules of one group look at the same bits."""
    common = some[0].mask & others[0].mask
    first: dict[int | None, Rule] = {}
    for rule in some:
        first.setdefault(_key(rule, common), rule)
    for rule in others:
        met = first.get(_key(rule, common))
        if met is not None and met.out_port != rule.out_port:
            yield met, rule


def _key(rule: Rule, mask: int) -> int | None:
    return rule.in_port if rule.destination is None else rule.destination & mask


def _check_circuits(fabric: Fabric, epoch: Epoch, tables: Tables) -> Iterator[Finding]:
    for ocs in (node.name for node in fabric.ocses):
        table = tables.get(ocs, ())
        held = {Circuit(rule.in_port, rule.out_port): rule for rule in table if rule.in_port is not None}
        for circuit in sorted(epoch.circuits(ocs) - set(held)):
            text = f"{ocs}: no rule for the circuit {circuit.in_port}->{circuit.out_port} of epoch {epoch.number}"
            yield Finding("circuit", ocs, text)
        for circuit in sorted(set(held) - epoch.circuits(ocs)):
            text = f"{ocs}: rule {describe(held[circuit])} is no circuit of epoch {epoch.number}"
            yield Finding("circuit", ocs, text, held[circuit])


# -- destinations -----------------------------------------------------------------------------------------------------


class _Destinations:
    """Checks every NIC as a destination, and gathers what goes wrong by the rule that is to blame."""

    def __init__(self, graph: LitGraph, forwarder: Forwarder) -> None:
        self._graph = graph
        self._forwarder = forwarder
        self._found: dict[tuple[FindingKind, str, Rule | None], Finding] = {}
        self._sources: dict[str, list[Port]] = {}
        """By packet switch: the NICs whose packets enter there. They share a fate unless it is to turn back."""
        for nic in graph.fabric.all_nics:
            crossed = forwarder.cross(nic)
            if crossed is not None and graph.fabric.node(crossed[0].node).kind is not Kind.HOST:
                self._sources.setdefault(crossed[0].node, []).append(nic)

    def findings(self) -> list[Finding]:
        """The faults, each once, with a pair that it hits and the number of such pairs."""
        for nic in self._graph.fabric.all_nics:
            fates = Fates(self._forwarder, nic)
            for switch, sources in self._sources.items():
                if fates.of_switch(switch).end != "delivered":
                    self._blame_sources(fates, sources)
            for node in self._graph.fabric.switches:
                fate = fates.of_switch(node.name)
                if fate.end == "loop" and ("loop", fate.switch, fate.rule) not in self._found:
                    self._add("loop", fate, fates.nic, None)
        return list(self._found.values())

    def _blame_sources(self, fates: Fates, sources: Iterable[Port]) -> None:
        for src in sources:
            fate = fates.of_source(src)
            if fate is None or src.node == fates.nic.node:
                continue
            if fate.end == "loop":
                self._add("loop", fate, fates.nic, src)
            elif fate.end == "wrong":
                self._add("wrong-delivery", fate, fates.nic, src)
            elif fate.end == "dropped" and self._graph.reaches(src, fates.nic):
                self._add("black-hole", fate, fates.nic, src)

    def _add(self, kind: FindingKind, fate: Fate, dst: Port, src: Port | None) -> None:
        """Note a fault. The first pair that it hits stays its example; later ones are counted."""
        key = (kind, fate.switch, fate.rule)
        found = self._found.get(key)
        hit = 0 if src is None else 1
        if found is None or found.pair is None:
            pair = (src, dst) if src is not None else None
            text = self._text(kind, fate, dst) + (f", for example from {src} to {dst}" if pair else "")
            self._found[key] = Finding(kind, fate.switch, text, fate.rule, pair, hit)
        else:
            self._found[key] = replace(found, pairs=found.pairs + hit)

    def _text(self, kind: FindingKind, fate: Fate, dst: Port) -> str:
        """What happens to packets for `dst`, and by which rule."""
        address = self._graph.fabric.address(dst)
        by = f"rule {describe(fate.rule)}" if fate.rule is not None else "having no rule"
        if kind == "loop":
            way = " -> ".join((*fate.circle, fate.circle[0]))
            return f"{fate.switch}: {by} sends packets for {address} in a circle ({way})"
        if kind == "wrong-delivery":
            return f"{fate.switch}: {by} sends packets for {address} to {fate.at}, which has another address"
        return f"{fate.switch}: {by} drops packets for {address}, though there is a path"


def describe(rule: Rule) -> str:
    """A rule as messages show it."""
    if rule.destination is None:
        return f"[in port {rule.in_port} -> port {rule.out_port}]"
    return f"[{IPv4Address(rule.destination)}/{IPv4Address(rule.mask)} -> port {rule.out_port}]"
