"""From "these two ToRs get a circuit" to ports of OCSes, with as few changes to the current circuits as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set

from controllers.epochs import Circuit, Epoch, Matchings, duplex
from controllers.policies.planes import Hop, LightPath, Planes
from topologies.fabric import Fabric, Port

Pair = tuple[str, str]
"""Two sites (nodes that are wired to OCSes), in the order of the fabric."""


class Placement:
    """Circuits between sites as they are chosen, within the ports that may be used.

    Where OCSs are cabled to each other (aggregation and core tiers) a "circuit" here is a whole light path between two
    sites, which takes a circuit at each OCS on its way (see `planes`); they make one plane together.

    On one OCS no placement of the same pairs keeps more of the current circuits: those that join a wanted pair stay on
    their ports, new ones take dark ports first, and circuits whose ports nobody claims stay lit. Over several planes
    each pair is put where a circuit of it shines already, else where both ends have most ports left, which is good but
    not always the fewest.
    """

    def __init__(self, fabric: Fabric, current: Epoch, free_ports: Mapping[str, frozenset[int]]) -> None:
        self._current, self._usable = current, free_ports
        self._planes = Planes(fabric, current, free_ports)
        self._wiring = self._planes.terminals
        named = {site for ports in self._wiring.values() for site in ports}
        self.sites = tuple(node.name for node in fabric.nodes if node.name in named)
        """Everything that has a usable port at some OCS, in the order of the fabric."""
        self._order = {site: place for place, site in enumerate(self.sites)}
        self._room = {(plane, site): len(ports) for plane, of in self._wiring.items() for site, ports in of.items()}
        self._lit = {plane: self._lit_pairs(plane) for plane in self._wiring}
        self._chosen: dict[str, Counter[Pair]] = {plane: Counter() for plane in self._wiring}

    def join(self, a: str, b: str) -> bool:
        """Give two sites another circuit; returns whether some plane had a port left for both."""
        pair = self.pair(a, b)
        fitting = [plane for plane in self._wiring if self._left(plane, pair)]
        if not fitting:
            return False
        plane = max(fitting, key=lambda plane: (self._kept(plane, pair), self._left(plane, pair)))
        self._chosen[plane][pair] += 1
        for site in pair:
            self._room[plane, site] -= 1
        return True

    def count(self, a: str, b: str) -> int:
        """How many circuits two sites have been given."""
        return sum(chosen[self.pair(a, b)] for chosen in self._chosen.values())

    def nearness(self, a: str, b: str) -> tuple[int, int, int]:
        """Sorts pairs: first by how far they are apart in a ring of all sites in the fabric's order, then by that."""
        first, second = sorted((self._order[a], self._order[b]))
        return min(second - first, len(self.sites) - second + first), first, second

    def pair(self, a: str, b: str) -> Pair:
        """Two sites in the fabric's order."""
        return (a, b) if self._order[a] < self._order[b] else (b, a)

    def matchings(self) -> Matchings:
        """The circuits that were chosen, and the current ones that they leave alone; OCSes without any left out.

        Where ports between OCSs have failed, light paths that find none are left out.
        """
        claimed: set[Port] = set()
        hops = [hop for plane in self._wiring for hop in self._hops(plane, claimed)]
        joined: dict[str, list[tuple[int, int]]] = {}
        for a, b in hops:
            joined.setdefault(a.node, []).append((a.number, b.number))
        left = {ocs: frozenset(self._left_alone(ocs, claimed)) for ocs in self._usable}
        found = {ocs: duplex(joined.get(ocs, ())) | left[ocs] for ocs in left}
        return {ocs: matching for ocs, matching in found.items() if matching}

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _left(self, plane: str, pair: Pair) -> int:
        """How many circuits the two could still get there."""
        return min(self._room.get((plane, site), 0) for site in pair)

    def _kept(self, plane: str, pair: Pair) -> bool:
        """Whether one more circuit of the pair could be one that shines already."""
        return len(self._lit[plane].get(pair, ())) > self._chosen[plane][pair]

    def _lit_pairs(self, plane: str) -> dict[Pair, list[LightPath]]:
        """By pair: the current light paths that join it both ways, from its first site on."""
        owner = {port: site for site, ports in self._wiring[plane].items() for port in ports}
        lit: dict[Pair, list[LightPath]] = {}
        for port in sorted(owner):
            path = self._planes.current(port)
            if path is not None and path.b in owner and owner[path.b] != owner[port]:
                pair = self.pair(owner[port], owner[path.b])
                if owner[port] == pair[0]:
                    lit.setdefault(pair, []).append(path)
        return lit

    def _hops(self, plane: str, claimed: set[Port]) -> Iterator[Hop]:
        """The circuits of a plane's chosen light paths, those that shine already first; their ports get claimed."""
        chosen, lit = self._chosen[plane], self._lit[plane]
        kept = [path for pair, count in chosen.items() for path in lit.get(pair, ())[:count]]
        for path in kept:
            yield from _claim(path, claimed)
        for pair, count in chosen.items():
            for _ in range(count - len(lit.get(pair, ())[:count])):
                a, b = (self._port(plane, site, claimed) for site in pair)
                new = self._planes.route(a, b, claimed)
                if new is not None:
                    yield from _claim(new, claimed)

    def _port(self, plane: str, site: str, claimed: Set[Port]) -> Port:
        """A port of a site that nobody claims, a dark one if there is one."""
        free = [port for port in self._wiring[plane][site] if port not in claimed]
        return next((port for port in free if self._planes.dark(port)), free[0])

    def _left_alone(self, ocs: str, claimed: Set[Port]) -> Iterator[Circuit]:
        usable = {port for port in self._usable[ocs] if Port(ocs, port) not in claimed}
        return (circuit for circuit in self._current.circuits(ocs) if usable.issuperset(circuit))


def _claim(path: LightPath, claimed: set[Port]) -> tuple[Hop, ...]:
    claimed.update(port for hop in path.hops for port in hop)
    return path.hops
