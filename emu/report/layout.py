"""Where to draw the nodes of a fabric: layers from the hosts upward, pods side by side, OCSs on top with their ports.

Positions are in the units of a drawing whose height grows with its layers, the origin at the upper left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

from topologies.fabric import Fabric, Kind, Node, Port

MOST_HOSTS: Final = 96
"""So many hosts are drawn one by one; more become one box at their switch."""
MOST_NODES: Final = 700
_NARROWEST: Final = 880.0
_STEP: Final = 46.0
_POD_GAP: Final = 26.0
_LAYER: Final = 118.0
_OCS_LAYER: Final = 150.0
_MARGIN: Final = 44.0
_SIDE: Final = 70.0
"""At the left and right; the names of the layers stand there."""
_PORT_STEP: Final = 26.0


@dataclass(frozen=True, slots=True)
class Box:
    """One node in the drawing. kind: a node's, or `hosts`. count: how many hosts it stands for. ports: x by number."""

    name: str
    kind: str
    x: float
    y: float
    width: float
    pod: int | None
    count: int = 1
    ports: Mapping[int, float] | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by name, the node that stands for each one that is not drawn, and the size of it all."""

    boxes: dict[str, Box]
    stands_for: dict[str, str]
    width: float
    height: float
    layers: list[tuple[str, float]]


class TooLargeError(ValueError):
    """A fabric of more nodes than a drawing can show; the message says how many."""


def arrange(fabric: Fabric) -> Layout:
    """A drawing of a fabric. Raises TooLargeError."""
    groups = _groups(fabric)
    rows = _rows(fabric, groups)
    if sum(len(row) for _, row in rows) > MOST_NODES:
        raise TooLargeError(f"{len(fabric.nodes)} nodes are too many to draw")
    width = max(_NARROWEST, *(_row_width(fabric, row) for _, row in rows)) + 2 * _SIDE
    heights = _heights(rows)
    boxes: dict[str, Box] = {}
    for (_, row), y in zip(rows, heights, strict=True):
        for box in _place(fabric, row, y, width, boxes, groups):
            boxes[box.name] = box
    stands_for = {host: f"{switch}.hosts" for switch, hosts in groups.items() for host in hosts}
    layers = [(_title(row), y) for (_, row), y in zip(rows, heights, strict=True)]
    return Layout(boxes, stands_for, width, heights[0] + _MARGIN, layers)


def _groups(fabric: Fabric) -> dict[str, list[str]]:
    """By switch, the hosts that one box stands for; none if there are few enough to draw each."""
    groups: dict[str, list[str]] = defaultdict(list)
    if len(fabric.hosts) > MOST_HOSTS:
        for host in fabric.hosts:
            groups[fabric.peer(fabric.nics(host.name)[0]).node].append(host.name)
    return groups


def _rows(fabric: Fabric, groups: Mapping[str, Sequence[str]]) -> list[tuple[tuple[int, bool], list[Node]]]:
    """The layers from the bottom: hosts, then switches by tier, OCSs above the packet switches of the same tier."""
    tiers = _tiers(fabric)
    rows: dict[tuple[int, bool], list[Node]] = defaultdict(list)
    for switch, hosts in groups.items():
        rows[0, False].append(Node(f"{switch}.hosts", Kind.HOST, gpus=len(hosts), pod=fabric.node(switch).pod))
    for node in fabric.nodes:
        if node.kind is not Kind.HOST:
            rows[tiers[node.name], node.kind is Kind.OCS].append(node)
        elif not groups:
            rows[0, False].append(node)
    return sorted(rows.items())


def _tiers(fabric: Fabric) -> dict[str, int]:
    """The builder's tiers, where it gives any; else hops from the nearest host."""
    hosts = {host.name for host in fabric.hosts}
    hops = nx.multi_source_dijkstra_path_length(fabric.graph(), hosts, weight=None)
    return {node.name: node.tier if node.tier else int(hops.get(node.name, 1)) or 1 for node in fabric.nodes}


def _title(row: Sequence[Node]) -> str:
    kind = row[0].kind
    if kind is Kind.HOST:
        return "hosts"
    return {Kind.TOR: "ToRs", Kind.EPS: "EPSs", Kind.OCS: "OCSs"}[kind]


def _heights(rows: Sequence[tuple[tuple[int, bool], list[Node]]]) -> list[float]:
    """The y of each layer, the topmost one first from above."""
    heights: list[float] = []
    y = _MARGIN
    for (_, optical), _ in reversed(rows):
        heights.append(y + (18 if optical else 0))
        y += _OCS_LAYER if optical else _LAYER
    return heights[::-1]


def _box_width(fabric: Fabric, node: Node) -> float:
    if node.kind is Kind.OCS:
        return max(120.0, _PORT_STEP * (len(fabric.ports(node.name)) + 1))
    return 30.0 if node.kind is Kind.HOST else 40.0


def _row_width(fabric: Fabric, row: Sequence[Node]) -> float:
    pods = len({node.pod for node in row})
    return sum(max(_STEP, _box_width(fabric, node) + 16) for node in row) + _POD_GAP * max(pods - 1, 0)


def _place(
    fabric: Fabric,
    row: Sequence[Node],
    y: float,
    width: float,
    below: Mapping[str, Box],
    groups: Mapping[str, Sequence[str]],
) -> list[Box]:
    """A layer from left to right: hosts evenly, pods apart; switches above what they join, as far as there is room."""
    widths = [_box_width(fabric, node) for node in row]
    wished = [_wish(fabric, node, below) for node in row]
    if any(wish is None for wish in wished) or row[0].kind is Kind.HOST:
        centres = _evenly(row, widths, width)
    else:
        centres = _spread([wish for wish in wished if wish is not None], widths, width)
    return [_box(fabric, node, x, y, w, groups) for node, x, w in zip(row, centres, widths, strict=True)]


def _wish(fabric: Fabric, node: Node, below: Mapping[str, Box]) -> float | None:
    """The middle of what a switch joins in the layers below."""
    peers = [fabric.peer(port).node for port in fabric.ports(node.name)] if node.gpus == 0 else []
    found = [below[name].x for name in peers if name in below]
    found += [below[f"{node.name}.hosts"].x] if f"{node.name}.hosts" in below else []
    return sum(found) / len(found) if found else None


def _evenly(row: Sequence[Node], widths: Sequence[float], width: float) -> list[float]:
    """As far apart as the drawing is wide, with a gap between pods."""
    gaps = [_POD_GAP if place and row[place].pod != row[place - 1].pod else 0.0 for place in range(len(row))]
    needed = [max(_STEP, own + 16) for own in widths]
    stretch = (width - 2 * _SIDE - sum(gaps)) / sum(needed)
    centres, x = [], _SIDE
    for gap, own in zip(gaps, needed, strict=True):
        x += gap + own * stretch / 2
        centres.append(x)
        x += own * stretch / 2
    return centres


def _spread(wished: Sequence[float], widths: Sequence[float], width: float) -> list[float]:
    """Wished places pushed apart until nothing overlaps, in the order of the wishes, then centred as a whole."""
    order = sorted(range(len(wished)), key=lambda place: (wished[place], place))
    if len({round(wish) for wish in wished}) < len(wished):
        return _ties(order, widths, width)
    centres = [0.0] * len(wished)
    edge = -1e9
    for place in order:
        half = max(_STEP, widths[place] + 16) / 2
        centres[place] = max(wished[place], edge + half)
        edge = centres[place] + half
    over = max(0.0, edge - (width - _SIDE))
    return [centre - over for centre in centres]


def _ties(order: Sequence[int], widths: Sequence[float], width: float) -> list[float]:
    """Places for switches that wish to be at the same ones (as core switches do): evenly over the drawing."""
    needed = [max(_STEP, widths[place] + 16) for place in order]
    room = width - 2 * _SIDE
    stretch = min(room / sum(needed), 3.4)
    centres = [0.0] * len(order)
    x = _SIDE + (room - sum(needed) * stretch) / 2
    for place, own in zip(order, needed, strict=True):
        centres[place] = x + own * stretch / 2
        x += own * stretch
    return centres


def _box(fabric: Fabric, node: Node, x: float, y: float, width: float, groups: Mapping[str, Sequence[str]]) -> Box:
    if groups and node.kind is Kind.HOST:
        return Box(node.name, "hosts", x, y, 40.0, node.pod, count=node.gpus)
    ports = None
    if node.kind is Kind.OCS:
        found: Sequence[Port] = fabric.ports(node.name)
        step = width / (len(found) + 1)
        ports = {port.number: x - width / 2 + step * (place + 1) for place, port in enumerate(found)}
    return Box(node.name, str(node.kind), x, y, width, node.pod, ports=ports)
