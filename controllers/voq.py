"""`dark: hold` as tables: virtual output queues (VOQs) at the switches that transmit into circuits.

Every such switch has queues for each other one, as many as it has uplinks. What routes would send into an OCS goes to a
queue instead, by a port of the switch's own; it comes out at another, where one rule says which uplink it takes. So a
packet that waited while circuits changed leaves by the uplink that leads to its destination then, and all packets of a
destination keep their order. A queue is open while a rule leads on from it; where an epoch has no way to a destination,
its packets wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controllers.circuits import darkened
from controllers.epochs import Epoch
from controllers.paths import Forwarder, number_of
from controllers.tables import INNER_PORTS, Rule, Table, Tables
from topologies.fabric import Fabric, Kind, Port

_ONWARD, _EXACT = 500, 300
"""Priorities: of the rules behind queues, above all others; of destinations that no route leads to."""


@dataclass(frozen=True, slots=True, order=True)
class Voq:
    """One queue of a switch for one other, `site`. lane: which of several. place: among those of its switch."""

    switch: str
    site: str
    lane: int
    place: int

    @property
    def entry(self) -> int:
        """The port by which the switch sends into it."""
        return INNER_PORTS + 2 * self.place

    @property
    def exit(self) -> int:
        """The port of the switch where packets come out of it."""
        return self.entry + 1


class Voqs:
    """The queues of a fabric, and what tables look like with them."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self.uplinks = _uplinks(fabric)
        """By switch that transmits into OCSs: its ports that do."""
        self._homes = {nic: fabric.peer(nic).node for nic in fabric.all_nics}
        self._of = {switch: tuple(self._make(switch)) for switch in self.uplinks}

    @property
    def all(self) -> tuple[Voq, ...]:
        """Every queue."""
        return tuple(queue for queues in self._of.values() for queue in queues)

    def realise(self, tables: Tables) -> dict[str, Table]:
        """Tables in which what crosses circuits passes the queues; those of other switches as they are."""
        return {name: self._with_queues(name, table) if name in self._of else table for name, table in tables.items()}

    def open(self, tables: Tables) -> set[Voq]:
        """The queues that lead on, by realised tables."""
        onward = {name: {rule.in_port for rule in tables.get(name, ())} for name in self._of}
        return {queue for queue in self.all if queue.exit in onward[queue.switch]}

    def darkening(self, old: Epoch, new: Epoch, tables: Tables) -> set[Voq]:
        """The queues that lead into circuits which `new` does not keep. tables: the realised ones of `old`."""
        gone = {Port(ocs, one.out_port) for ocs, circuits in darkened(old, new).items() for one in circuits}
        forwarder = Forwarder(self._fabric, tables)
        found = set()
        for queue in self.all:
            for rule in tables.get(queue.switch, ()):
                if rule.in_port == queue.exit:
                    crossed = forwarder.cross(Port(queue.switch, rule.out_port))
                    if crossed is not None and not gone.isdisjoint(crossed[1]):
                        found.add(queue)
        return found

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _make(self, switch: str) -> Iterator[Voq]:
        sites = [site for site in dict.fromkeys(self._homes.values()) if site != switch]
        lanes = len(self.uplinks[switch])
        pairs = [(site, lane) for site in sites for lane in range(lanes)]
        return (Voq(switch, site, lane, place) for place, (site, lane) in enumerate(pairs))

    def _with_queues(self, switch: str, table: Table) -> Table:
        routed = {rule.destination: rule for rule in table if rule.destination is not None}
        rules = list(table)
        for site, queues in self._by_site(switch).items():
            numbers = [number_of(self._fabric.address(nic)) for nic, home in self._homes.items() if home == site]
            leading = {number: routed[number] for number in numbers if number in routed}
            optical = [rule for rule in leading.values() if rule.out_port in self.uplinks[switch]]
            ports = list(dict.fromkeys(rule.out_port for rule in optical))
            for rule in optical:
                lane = queues[ports.index(rule.out_port)]
                rules[rules.index(rule)] = Rule(rule.priority, lane.entry, rule.destination, rule.mask)
            rules += [Rule(_EXACT, queues[0].entry, number) for number in numbers if number not in routed]
            ways = ports or list(dict.fromkeys(rule.out_port for rule in leading.values()))
            rules += self._onward(queues, ways)
        return tuple(rules)

    def _by_site(self, switch: str) -> Mapping[str, list[Voq]]:
        found: dict[str, list[Voq]] = {}
        for queue in self._of[switch]:
            found.setdefault(queue.site, []).append(queue)
        return found

    @staticmethod
    def _onward(queues: list[Voq], ways: list[int]) -> Iterator[Rule]:
        """Each queue leads on by a way of its own; those that are left by the first: they may hold something yet."""
        for queue in queues if ways else ():
            way = ways[queue.lane] if queue.lane < len(ways) else ways[0]
            yield Rule(_ONWARD, way, in_port=queue.exit)


def _uplinks(fabric: Fabric) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for switch in fabric.switches:
        ports = [p.number for p in fabric.ports(switch.name) if fabric.node(fabric.peer(p).node).kind is Kind.OCS]
        if ports:
            found[switch.name] = ports
    return found
