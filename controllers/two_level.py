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
_DOWN = {_EDGE: (EXACT, 0xFFFF_FFFF), _AGGREGATION: (PREFIX, 0xFFFF_FF00), _CORE: (PREFIX, 0xFFFF_0000)}
"""By tier: priority and mask of the downward rules, which read the whole address, pod and edge, and the pod."""


def two_level_rules(fabric: Fabric) -> dict[str, list[Rule]]:
    """By packet switch of tier 1 to 3: its rules.

    They are right on regular fat-trees and two-tier Clos networks only; others must be checked.
    """
    addresses = [number_of(fabric.address(nic)) for nic in fabric.all_nics]
    ids = {value: value - _FIRST_ID for value in sorted({address & _ID for address in addresses})}
    edges = {value: value >> 8 for value in sorted({address & _EDGE_BYTE for address in addresses})}
    below: dict[str, dict[int, list[Port]]] = {}
    rules: dict[str, list[Rule]] = {}
    for switch in sorted(fabric.switches, key=_tier):
        if _tier(switch) not in _DOWN:
            continue
        down, up = _sides(fabric, switch)
        priority, mask = _DOWN[_tier(switch)]
        below[switch.name] = prefixes = _prefixes(fabric, down, mask, below)
        rules[switch.name] = [
            Rule(priority, ports[0].number, prefix, mask) for prefix, ports in sorted(prefixes.items())
        ]
        if _tier(switch) == _EDGE:
            rules[switch.name] += _spread(up, ids, _ID)
        elif _tier(switch) == _AGGREGATION:
            rules[switch.name] += _spread(up, edges, _EDGE_BYTE)
            rules[switch.name] += _parallel(fabric, prefixes, below)
    return rules


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


def _parallel(
    fabric: Fabric, prefixes: Mapping[int, list[Port]], below: Mapping[str, Mapping[int, list[Port]]]
) -> Iterator[Rule]:
    """Where several cables lead down to one edge switch: a rule for each address there, so that all of them are used.

    A packet goes down by the cable that the edge switch itself would send its address up by, if that is one of them.
    """
    priority, mask = _DOWN[_EDGE]
    for ports in prefixes.values():
        if len(ports) == 1:
            continue
        edge = fabric.node(fabric.peer(ports[0]).node)
        up = _sides(fabric, edge)[1]
        for address in sorted(below.get(edge.name, ())):
            place = (address & _ID) - _FIRST_ID
            cable = fabric.peer(up[place % len(up)])
            port = cable if cable in ports else ports[place % len(ports)]
            yield Rule(priority, port.number, address, mask)


def _spread(up: list[Port], places: Mapping[int, int], mask: int) -> list[Rule]:
    """One rule for each value under `mask`, its place saying which of the uplinks it takes."""
    return [Rule(SUFFIX, up[place % len(up)].number, value, mask) for value, place in places.items() if up]
