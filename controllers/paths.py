"""Where light and packets go: the graph that an epoch lights, and the paths that tables take through a fabric.

Two views of one thing, kept apart on purpose. `LitGraph` says what the wiring and the circuits *could* carry;
`Forwarder` follows forwarding tables exactly as packets do: highest priority first, masks, ports of entry, and like
OpenFlow not out of the port that a packet came in by, unless the rule says so. Routes are made from the first, checks
compare the second with it.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache

from controllers.epochs import Epoch
from controllers.tables import Rule, Table, Tables, address_number
from topologies.fabric import Fabric, FabricError, Kind, Port

number_of = lru_cache(maxsize=1 << 16)(address_number)
"""`address_number`, remembered: it is asked for the same few addresses again and again."""


def cross(fabric: Fabric, port: Port, through: Callable[[Port], int | None]) -> tuple[Port, tuple[Port, ...]] | None:
    """Where a packet sent out of `port` lands: the electrical port, and the OCS ports that it left by on the way.

    through: the exit that an OCS gives light which enters by that port, None if it is dark there.
    Returns None if the light ends in the dark, in a port without a cable or in a circle of OCSes.
    """
    exits: list[Port] = []
    try:
        arrival = fabric.peer(port)
        while fabric.node(arrival.node).kind is Kind.OCS:
            number = through(arrival)
            if number is None or number == arrival.number or (leaving := Port(arrival.node, number)) in exits:
                return None
            exits.append(leaving)
            arrival = fabric.peer(leaving)
    except FabricError:
        return None
    return arrival, tuple(exits)


def turns_back(rule: Rule, arrival: Port) -> bool:
    """Whether a switch drops a packet because its rule would send it out of the port that it came in by."""
    return rule.out_port == arrival.number and not rule.hairpin


class LitGraph:
    """The directed graph of electrical links and lit circuits. Circuits may shine one way only; hosts never forward."""

    def __init__(self, fabric: Fabric, epoch: Epoch) -> None:
        exits = {Port(ocs, c.in_port): c.out_port for ocs, circuits in epoch.matchings.items() for c in circuits}
        self.fabric = fabric
        self.landing: dict[Port, Port] = {}
        """By electrical transmitter: the electrical port where its packets arrive; the dark ones are left out."""
        for port in fabric.transmitters():
            if (landed := cross(fabric, port, exits.get)) is not None:
                self.landing[port] = landed[0]
        self.one_way = any(self.landing.get(arrival) != port for port, arrival in self.landing.items())
        """Whether some light is not answered by light the other way."""
        self._feeders = {arrival: port for port, arrival in self.landing.items()}
        self._inward: dict[str, list[Port]] = {node.name: [] for node in fabric.nodes}
        """By node: the switch ports whose packets arrive there."""
        for port, arrival in self.landing.items():
            if fabric.node(port.node).kind is not Kind.HOST:
                self._inward[arrival.node].append(port)
        self._costs = {port: cost for port in self.landing if (cost := fabric.link(port).cost) != 1}
        self._distances: dict[str, dict[str, int]] = {}
        self._towards: dict[str, dict[str, list[Port]]] = {}

    def feeder(self, nic: Port) -> Port | None:
        """The port whose packets arrive at a NIC: one of its ToR, or of another host that a circuit joins it to."""
        return self._feeders.get(nic)

    def distances(self, switch: str) -> dict[str, int]:
        """By switch that can reach `switch`, nearest first: the least cost of a path there (hops, if links cost 1)."""
        if switch not in self._distances:
            found: dict[str, int] = {}
            queue = [(0, 0, switch)]
            pushed = 0
            while queue:
                distance, _, node = heapq.heappop(queue)
                if node in found:
                    continue
                found[node] = distance
                for port in self._inward[node]:
                    if port.node not in found:
                        pushed += 1  # of equals, the first that was met: names would order t10 before t2
                        heapq.heappush(queue, (distance + self._costs.get(port, 1), pushed, port.node))
            self._distances[switch] = found
        return self._distances[switch]

    def towards(self, switch: str) -> dict[str, list[Port]]:
        """By switch that can reach `switch`, nearest first: its ports that begin a least-cost path, by number."""
        if switch not in self._towards:
            distances = self.distances(switch)
            ports: dict[str, list[Port]] = {node: [] for node in distances if node != switch}
            for node, distance in distances.items():
                for port in self._inward[node]:
                    if distances[port.node] == distance + self._costs.get(port, 1):
                        ports[port.node].append(port)
            self._towards[switch] = {node: sorted(found) for node, found in ports.items()}
        return self._towards[switch]

    def reaches(self, src: Port, dst: Port) -> bool:
        """Whether packets that leave by the NIC `src` can get to the NIC `dst`."""
        first, last = self.landing.get(src), self._feeders.get(dst)
        if first is None or last is None:
            return False
        if first == dst:
            return True
        return self._forwards(last.node) and first.node in self.distances(last.node)

    def _forwards(self, node: str) -> bool:
        return self.fabric.node(node).kind is not Kind.HOST


class _Lookup:
    """A table made quick to ask: one dictionary for each priority and mask instead of a walk over all rules."""

    def __init__(self, table: Table) -> None:
        groups: dict[tuple[int, int | None], dict[int, Rule]] = {}
        for rule in sorted(table, key=lambda rule: -rule.priority):
            key, mask = (rule.in_port, None) if rule.destination is None else (rule.destination, rule.mask)
            if key is not None:
                groups.setdefault((rule.priority, mask), {}).setdefault(key, rule)
        self._groups = [(mask, rules) for (_, mask), rules in groups.items()]

    def rule(self, address: int, in_port: int | None) -> Rule | None:
        """The rule that a packet meets; without `in_port`, that of a packet which enters by no particular port."""
        for mask, rules in self._groups:
            key = in_port if mask is None else address & mask
            if key is not None and (found := rules.get(key)) is not None:
                return found
        return None


_lookups: OrderedDict[int, tuple[Table, _Lookup]] = OrderedDict()
_LOOKUPS_KEPT = 4096


def _lookup(table: Table) -> _Lookup:
    """The lookup of a table, kept while recent. Tables are immutable, so one is known by its identity."""
    kept = _lookups.get(id(table))
    if kept is None or kept[0] is not table:
        kept = _lookups[id(table)] = (table, _Lookup(table))
        while len(_lookups) > _LOOKUPS_KEPT:
            _lookups.popitem(last=False)
    return kept[1]


class Forwarder:
    """Follows tables through a fabric as packets would. Reads the tables once: make a new one when they change."""

    def __init__(self, fabric: Fabric, tables: Tables) -> None:
        self.fabric = fabric
        self._switches = {name: _lookup(table) for name, table in tables.items()}
        self._crossed: dict[Port, tuple[Port, tuple[Port, ...]] | None] = {}

    def rule(self, switch: str, address: int, in_port: int | None = None) -> Rule | None:
        """The rule that decides for a destination at a switch, None if it drops the packet."""
        lookup = self._switches.get(switch)
        return lookup.rule(address, in_port) if lookup is not None else None

    def cross(self, port: Port) -> tuple[Port, tuple[Port, ...]] | None:
        """As the function `cross`, the OCS tables saying which way light goes."""
        if port not in self._crossed:
            self._crossed[port] = cross(self.fabric, port, self._exit)
        return self._crossed[port]

    def path(self, src: Port, dst: Port) -> tuple[Port, ...] | None:
        """The transmitting ports from one NIC to another, None if the packets never get there (see `routes.path`)."""
        address = number_of(self.fabric.address(dst))
        hops: dict[Port, None] = {}
        port = src
        while port not in hops and (crossed := self.cross(port)) is not None:
            arrival, exits = crossed
            hops.update(dict.fromkeys((port, *exits)))
            if self.fabric.node(arrival.node).kind is Kind.HOST:
                return tuple(hops) if arrival == dst else None
            rule = self.rule(arrival.node, address, arrival.number)
            if rule is None or turns_back(rule, arrival):
                return None
            port = Port(arrival.node, rule.out_port)
        return None

    def _exit(self, entry: Port) -> int | None:
        rule = self.rule(entry.node, 0, entry.number)
        return rule.out_port if rule is not None and rule.in_port is not None else None


def nic_pairs(fabric: Fabric) -> Iterator[tuple[Port, Port]]:
    """Every ordered pair of NICs of different hosts, in order."""
    nics = fabric.all_nics
    return ((src, dst) for src in nics for dst in nics if src.node != dst.node)
