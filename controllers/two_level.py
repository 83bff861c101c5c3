"""Two-level routing on fat-trees (Al-Fares et al., SIGCOMM 2008): prefixes on the way down, suffixes on the way up.

A NIC's address is 10.pod.edge.id. Downward, a prefix names the next port: one per pod at a core, one per edge switch at
an aggregation switch, one per NIC at an edge switch. Upward, a packet is spread by the low end of its destination: an
edge switch with m uplinks takes number (id - 2) mod m, an aggregation switch number (edge mod m). That is O(k) rules.

The second choice departs from the paper, which spreads by id there too. With m = k/2 and a destination's place in its
pod read as the number edge * m + (id - 2), both choices together are D-mod-k routing (Zahavi 2010): each core serves
one edge and id of every pod, so each downlink carries one destination alone (r of them under r:1 oversubscription).
Permutations then never collide on the way down, and shifts of a full tree (a ring in sequence) not on the way up
either.

A two-tier Clos network (leaf-spine, rails) is the same without cores: a leaf is an edge switch, a spine an aggregation
switch without uplinks. A leaf may have several cables to one spine; then the spine holds a rule for each address there.

An address that nobody owns cannot circle: an edge switch that does not know the id would send it up by the very
port that it came down by, which a switch does not do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from controllers.paths import number_of
from controllers.tables import Rule
from topologies.fabric import Fabric, Kind, Node, Port

EXACT, PREFIX, SUFFIX = 300, 200, 100
"""Priorities, far enough apart to put others between and above."""

_EDGE, _AGGREGATION, _CORE = 1, 2, 3
_FIRST_ID = 2
_ID, _EDGE_BYTE = 0x0000_00FF, 0x0000_FF00
_EDGE_MASK, _POD_MASK = 0xFFFF_FF00, 0xFFFF_0000
_DOWN = {_EDGE: (EXACT, 0xFFFF_FFFF), _AGGREGATION: (PREFIX, _EDGE_MASK), _CORE: (PREFIX, _POD_MASK)}
"""By tier: priority and mask of the downward rules, which read the whole address, pod and edge, and the pod."""


class TwoLevel:
    """Two-level rules of a fabric, and whether its wiring makes them right."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._addresses = [number_of(fabric.address(nic)) for nic in fabric.all_nics]
        self._switches = [switch for switch in sorted(fabric.switches, key=_tier) if _tier(switch) in _DOWN]
        self._down: dict[str, list[Port]] = {}
        self._up: dict[str, list[Port]] = {}
        self._below: dict[str, dict[int, list[Port]]] = {}
        """By switch: the prefixes below it, and the ports that lead there."""
        for switch in self._switches:
            down, up = _sides(fabric, switch)
            self._down[switch.name], self._up[switch.name] = down, up
            self._below[switch.name] = _prefixes(fabric, down, _DOWN[_tier(switch)][1], self._below)

    def rules(self) -> dict[str, list[Rule]]:
        """By packet switch of tier 1 to 3: its rules. Unless the fabric is `regular` they must be checked."""
        ids = {value: value - _FIRST_ID for value in sorted({address & _ID for address in self._addresses})}
        edges = {value: value >> 8 for value in sorted({address & _EDGE_BYTE for address in self._addresses})}
        rules: dict[str, list[Rule]] = {}
        for switch in self._switches:
            priority, mask = _DOWN[_tier(switch)]
            up, prefixes = self._up[switch.name], self._below[switch.name]
            rules[switch.name] = [
                Rule(priority, ports[0].number, prefix, mask) for prefix, ports in sorted(prefixes.items())
            ]
            if _tier(switch) == _EDGE:
                rules[switch.name] += _spread(up, ids, _ID)
            elif _tier(switch) == _AGGREGATION:
                rules[switch.name] += _spread(up, edges, _EDGE_BYTE)
                rules[switch.name] += self._parallel(prefixes)
        return rules

    @property
    def regular(self) -> bool:
        """Whether these rules deliver every address from every switch that NICs send to, as the wiring shows.

        True for fat-trees, full or not, and for two-tier Clos networks; false says only that it must be looked at.
        Every NIC is below one edge switch, which has its /24 for itself; every switch above knows all of the /24s, or
        all of each /16 that it knows and has uplinks for the rest; every core knows every /16. So a packet goes up
        until a switch knows its edge, and from there down.
        """
        edges = [self._below[switch.name] for switch in self._switches if _tier(switch) == _EDGE]
        every = {address & _EDGE_MASK for address in self._addresses}
        if sorted(address for below in edges for address in below) != sorted(self._addresses):
            return False
        if sum(len({address & _EDGE_MASK for address in below}) for below in edges) != len(every):
            return False
        by_pod: dict[int, set[int]] = {}
        for edge in every:
            by_pod.setdefault(edge & _POD_MASK, set()).add(edge)
        return all(self._regular_at(switch, every, by_pod) for switch in self._switches)

    def _regular_at(self, switch: Node, every: set[int], by_pod: Mapping[int, set[int]]) -> bool:
        """Whether one switch is wired as `regular` wants it: next to its own tier only, and knowing enough."""
        down, up, below = self._down[switch.name], self._up[switch.name], self._below[switch.name]
        tier = _tier(switch)
        if any(_tier(self._peer(port)) != tier - 1 for port in down) or any(
            _tier(self._peer(port)) != tier + 1 for port in up
        ):
            return False
        if tier == _EDGE:
            return bool(up) or len(below) == len(self._addresses)
        if tier == _AGGREGATION:
            pods = {edge & _POD_MASK for edge in below}
            return set(below) == every or (bool(up) and all(by_pod[pod] <= set(below) for pod in pods))
        return set(below) == set(by_pod)

    def _peer(self, port: Port) -> Node:
        return self._fabric.node(self._fabric.peer(port).node)

    def _parallel(self, prefixes: Mapping[int, list[Port]]) -> Iterator[Rule]:
        """Where several cables lead down to one edge switch: a rule for each address there, so that all are used.

        A packet goes down by the cable that the edge switch itself would send its address up by, if that is one of
        them.
        """
        priority, mask = _DOWN[_EDGE]
        for ports in prefixes.values():
            if len(ports) == 1:
                continue
            edge = self._fabric.peer(ports[0]).node
            up = self._up[edge]
            for address in sorted(self._below[edge]):
                place = (address & _ID) - _FIRST_ID
                cable = self._fabric.peer(up[place % len(up)])
                port = cable if cable in ports else ports[place % len(ports)]
                yield Rule(priority, port.number, address, mask)


def _tier(node: Node) -> int:
    return node.tier or 0


def _sides(fabric: Fabric, switch: Node) -> tuple[list[Port], list[Port]]:
    """The ports of a switch to lower tiers and those to higher ones, by number; OCSes are on neither side."""
    down: list[Port] = []
    up: list[Port] = []
    for port in fabric.ports(switch.name):
        peer = fabric.node(fabric.peer(port).node)
        if peer.kind is not Kind.OCS and peer.tier is not None and peer.tier != switch.tier:
            (down if peer.tier < _tier(switch) else up).append(port)
    return down, up


def _prefixes(
    fabric: Fabric, down: list[Port], mask: int, below: Mapping[str, Mapping[int, list[Port]]]
) -> dict[int, list[Port]]:
    """By prefix of the addresses below a switch: the ports that lead there, all to one neighbour.

    Of several neighbours it is that of the lowest port.
    """
    prefixes: dict[int, list[Port]] = {}
    for port in down:
        peer = fabric.peer(port)
        if fabric.node(peer.node).kind is Kind.HOST:
            found: Iterable[int] = [number_of(fabric.address(peer))]
        else:
            found = below.get(peer.node, ())
        for prefix in {address & mask for address in found}:
            ports = prefixes.setdefault(prefix, [])
            if not ports or fabric.peer(ports[0]).node == peer.node:
                ports.append(port)
    return prefixes


def _spread(up: list[Port], places: Mapping[int, int], mask: int) -> list[Rule]:
    """One rule for each value under `mask`, its place saying which of the uplinks it takes."""
    return [Rule(SUFFIX, up[place % len(up)].number, value, mask) for value, place in places.items() if up]
