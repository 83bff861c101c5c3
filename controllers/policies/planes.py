"""Light from site to site through one OCS or several: what an optical fabric can join, and what it joins now.

OCSs that are cabled to each other make a plane; light does not leave its plane. A port that is cabled to anything else
is a terminal, and what is cabled there a site. A light path joins two terminals both ways, by one circuit at each OCS
that it passes: one within an aggregation switch, three over aggregation, core and aggregation.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Set
from typing import NamedTuple

from controllers.epochs import Circuit, Epoch
from topologies.fabric import Fabric, Kind, Port

Hop = tuple[Port, Port]
"""Two ports of one OCS that a duplex circuit joins."""


class LightPath(NamedTuple):
    """Two terminals and the circuits between them, in order."""

    a: Port
    b: Port
    hops: tuple[Hop, ...]


class Planes:
    """The planes of a fabric, within the ports that may be used, and the circuits that are lit there."""

    def __init__(self, fabric: Fabric, current: Epoch, usable: Mapping[str, Set[int]]) -> None:
        self._fabric = fabric
        self._lit = {Port(ocs, port) for ocs, circuit in current.lit for port in circuit}
        self._joined = _duplex(current, usable)
        self.terminals: dict[str, dict[str, list[Port]]] = {}
        """By plane (called after its first OCS) and site: the usable terminals."""
        self._trunks: dict[str, dict[str, list[Port]]] = {ocs.name: {} for ocs in fabric.ocses}
        """By OCS and neighbouring OCS: the ports that lead there and are usable at both ends."""
        for plane, ocses in _planes(fabric).items():
            self.terminals[plane] = {}
            for ocs in ocses:
                for port in fabric.ports(ocs):
                    if port.number in usable.get(ocs, ()):
                        self._sort_in(plane, port, usable)

    def current(self, terminal: Port) -> LightPath | None:
        """The light path that begins at a terminal now, None if there is none within the usable ports."""
        hops: list[Hop] = []
        entry = terminal
        while (leaving := self._joined.get(entry)) is not None and len(hops) <= len(self._trunks):
            hops.append((entry, leaving))
            entry = self._fabric.peer(leaving)
            if self._fabric.node(entry.node).kind is not Kind.OCS:
                return LightPath(terminal, leaving, tuple(hops))
        return None

    def dark(self, port: Port) -> bool:
        """Whether no circuit uses the port now."""
        return port not in self._lit

    def route(self, a: Port, b: Port, claimed: Set[Port]) -> LightPath | None:
        """A light path between two terminals of one plane that keeps off the claimed ports, over the fewest OCSs.

        Where it can, it takes circuits that are lit already, else dark ports. None if no ports are left.
        """
        way = self._way(a.node, b.node, claimed)
        if way is None:
            return None
        hops: list[Hop] = []
        entry = a
        for here, there in itertools.pairwise(way):
            trunk = self._trunk(self._free(here, there, claimed), entry, b)
            hops.append((entry, trunk))
            entry = self._fabric.peer(trunk)
        return LightPath(a, b, (*hops, (entry, b)))

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _sort_in(self, plane: str, port: Port, usable: Mapping[str, Set[int]]) -> None:
        peer = self._fabric.peer(port)
        if self._fabric.node(peer.node).kind is not Kind.OCS:
            self.terminals[plane].setdefault(peer.node, []).append(port)
        elif peer.number in usable.get(peer.node, ()):
            self._trunks[port.node].setdefault(peer.node, []).append(port)

    def _way(self, start: str, end: str, claimed: Set[Port]) -> list[str] | None:
        """The OCSs of a shortest way over trunks of which one is free."""
        before: dict[str, str | None] = {start: None}
        queue = deque([start])
        while queue and end not in before:
            here = queue.popleft()
            for there in self._trunks[here]:
                if there not in before and self._free(here, there, claimed):
                    before[there] = here
                    queue.append(there)
        if end not in before:
            return None
        way: list[str] = []
        at: str | None = end
        while at is not None:
            way.append(at)
            at = before[at]
        return way[::-1]

    def _free(self, here: str, there: str, claimed: Set[Port]) -> list[Port]:
        return [port for port in self._trunks[here][there] if port not in claimed]

    def _trunk(self, free: list[Port], entry: Port, end: Port) -> Port:
        """The best of the free trunks for light that enters by `entry` and is to end at `end`."""
        if (lit := self._joined.get(entry)) in free and lit is not None:
            return lit
        last = self._joined.get(end)
        if last is not None and (before := self._fabric.peer(last)) in free:
            return before
        return next((port for port in free if self.dark(port) and self.dark(self._fabric.peer(port))), free[0])


def _planes(fabric: Fabric) -> dict[str, list[str]]:
    """By the first OCS of each plane: its OCSs, all in the order of the fabric."""
    import networkx as nx  # noqa: PLC0415 - takes a third of a second, and few runs need it

    graph = nx.Graph()
    graph.add_nodes_from(ocs.name for ocs in fabric.ocses)
    for ocs in fabric.ocses:
        peers = (fabric.peer(port).node for port in fabric.ports(ocs.name))
        graph.add_edges_from((ocs.name, peer) for peer in peers if peer in graph)
    order = {ocs.name: place for place, ocs in enumerate(fabric.ocses)}
    planes = (sorted(plane, key=order.__getitem__) for plane in nx.connected_components(graph))
    return {plane[0]: plane for plane in sorted(planes, key=lambda plane: order[plane[0]])}


def _duplex(current: Epoch, usable: Mapping[str, Set[int]]) -> dict[Port, Port]:
    """Every usable port that shines both ways to another usable one, and that."""
    return {
        Port(ocs, a): Port(ocs, b)
        for ocs, (a, b) in current.lit
        if Circuit(b, a) in current.circuits(ocs) and {a, b} <= usable.get(ocs, frozenset())
    }
