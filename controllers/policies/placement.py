"""From "these two ToRs get a circuit" to ports of OCSes, with as few changes to the current circuits as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controllers.epochs import Circuit, Epoch, Matching, Matchings, duplex
from topologies.fabric import Fabric

Pair = tuple[str, str]
"""Two sites (nodes that are wired to OCSes), in the order of the fabric."""


class Placement:
    """Circuits between sites as they are chosen, within the ports that may be used.

    On one OCS no placement of the same pairs keeps more of the current circuits: those that join a wanted pair stay on
    their ports, new ones take dark ports first, and circuits whose ports nobody claims stay lit. Over several OCSes
    each pair is put where a circuit of it shines already, else where both ends have most ports left, which is good but
    not always the fewest.
    """

    def __init__(self, fabric: Fabric, current: Epoch, free_ports: Mapping[str, frozenset[int]]) -> None:
        self._current, self._usable = current, free_ports
        self._wiring = {
            ocs.name: _wiring(fabric, ocs.name, free_ports.get(ocs.name, frozenset())) for ocs in fabric.ocses
        }
        named = {site for ports in self._wiring.values() for site in ports}
        self.sites = tuple(node.name for node in fabric.nodes if node.name in named)
        """Everything that has a usable port at some OCS, in the order of the fabric."""
        self._order = {site: place for place, site in enumerate(self.sites)}
        self._room = {(ocs, site): len(ports) for ocs, of in self._wiring.items() for site, ports in of.items()}
        self._lit = {ocs: self._lit_pairs(ocs) for ocs in self._wiring}
        self._chosen: dict[str, Counter[Pair]] = {ocs: Counter() for ocs in self._wiring}

    def join(self, a: str, b: str) -> bool:
        """Give two sites another circuit; returns whether some OCS had a port left for both."""
        pair = self.pair(a, b)
        fitting = [ocs for ocs in self._wiring if self._left(ocs, pair)]
        if not fitting:
            return False
        ocs = max(fitting, key=lambda ocs: (self._kept(ocs, pair), self._left(ocs, pair)))
        self._chosen[ocs][pair] += 1
        for site in pair:
            self._room[ocs, site] -= 1
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
        """The circuits that were chosen, and the current ones that they leave alone; OCSes without any left out."""
        found = {ocs: self._matching(ocs) for ocs in self._wiring}
        return {ocs: matching for ocs, matching in found.items() if matching}

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _left(self, ocs: str, pair: Pair) -> int:
        """How many circuits the two could still get there."""
        return min(self._room.get((ocs, site), 0) for site in pair)

    def _kept(self, ocs: str, pair: Pair) -> bool:
        """Whether one more circuit of the pair could be one that shines already."""
        return len(self._lit[ocs].get(pair, ())) > self._chosen[ocs][pair]

    def _lit_pairs(self, ocs: str) -> dict[Pair, list[tuple[int, int]]]:
        """By pair: the ports of the current circuits that join it both ways."""
        owner = {port: site for site, ports in self._wiring[ocs].items() for port in ports}
        lit: dict[Pair, list[tuple[int, int]]] = {}
        circuits = self._current.circuits(ocs)
        for a, b in sorted(circuits):
            if a in owner and b in owner and owner[a] != owner[b] and Circuit(b, a) in circuits:
                pair = self.pair(owner[a], owner[b])
                if owner[a] == pair[0]:
                    lit.setdefault(pair, []).append((a, b))
        return lit

    def _matching(self, ocs: str) -> Matching:
        joined = [ports for pair, count in self._chosen[ocs].items() for ports in self._lit[ocs].get(pair, ())[:count]]
        claimed = {port for ports in joined for port in ports}
        for pair, count in self._chosen[ocs].items():
            for _ in range(count - len(self._lit[ocs].get(pair, ())[:count])):
                ports = self._port(ocs, pair[0], claimed), self._port(ocs, pair[1], claimed)
                claimed.update(ports)
                joined.append(ports)
        return duplex(joined) | frozenset(self._left_alone(ocs, claimed))

    def _port(self, ocs: str, site: str, claimed: set[int]) -> int:
        """A port of a site that nobody claims, a dark one if there is one."""
        lit = {port for circuit in self._current.circuits(ocs) for port in circuit}
        return min(
            (port for port in self._wiring[ocs][site] if port not in claimed), key=lambda port: (port in lit, port)
        )

    def _left_alone(self, ocs: str, claimed: set[int]) -> Iterator[Circuit]:
        usable = self._usable.get(ocs, frozenset()) - claimed
        return (circuit for circuit in self._current.circuits(ocs) if usable.issuperset(circuit))


def _wiring(fabric: Fabric, ocs: str, usable: frozenset[int]) -> dict[str, list[int]]:
    """By site: its usable ports at an OCS."""
    wired: dict[str, list[int]] = {}
    for port in fabric.ports(ocs):
        if port.number in usable:
            wired.setdefault(fabric.peer(port).node, []).append(port.number)
    return wired
