"""The shapes that RFabric's optical fabric takes by phase: mesh, isolated pods, two-level tree.

The abstract of OrchestrRL and RFabric (arXiv 2601.01209) says that circuits are laid for the collectives of training
iterations, for generation under different parallelism, and for weight sync. Summaries of the paper name the templates:
training has a mesh among its pods for all-reduce and all-to-all; generation has isolated pods, with small
tensor-parallel groups or a bipartite exchange between attention and FFN; weight sync goes down a two-level tree, from
the training pod to one generation pod and from there to the others.

What is ours, for port counts, wiring and the way a template is fitted to them were not found: a pod is a node that is
wired to OCSes; which pods take part, and which pairs get circuits first, is read off the announced demand (the pair
with most bytes per circuit first, as MixNet does, SIGCOMM 2025); and with too few ports a shape is thinned out, never
refused. Whatever the demand, sites that a mesh or tree joins stay connected wherever each has two ports at one OCS.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from controllers.policies.placement import Pair, Placement
from controllers.policies.protocol import Demand

Shape = Literal["mesh", "isolated-pods", "two-level-tree"]


def lay(shape: Shape, placement: Placement, demand: Demand) -> None:
    """Choose the circuits of a shape. `demand`: bytes by (source site, destination site); none means all alike."""
    known = {pair: count for pair, count in demand.items() if count and set(pair) <= set(placement.sites)}
    taking_part = {site for pair in known for site in pair}
    members = tuple(site for site in placement.sites if site in taking_part or not known)
    _SHAPES[shape](placement, members, known)


def _mesh(placement: Placement, members: Sequence[str], demand: Demand) -> None:
    """Every pair of members, as far as ports last: first so that all are connected, then by demand.

    With equal demand and two ports a site that is the ring in the fabric's order, with one port less than there are
    members the full mesh, and with more parallel circuits.
    """
    weights = _weights(placement, demand)
    every = {pair: weights.get(pair, 0) if weights else 1 for pair in itertools.combinations(members, 2)}
    _connect(placement, every)
    _fill(placement, every)


def _isolated_pods(placement: Placement, _: Sequence[str], demand: Demand) -> None:
    """Circuits within the groups of members that talk to each other, none between groups.

    Pods that talk to nobody get none; what is lit there, in nobody's way, stays.
    """
    weights = _weights(placement, demand)
    _connect(placement, weights)
    _fill(placement, weights)


def _two_level_tree(placement: Placement, members: Sequence[str], demand: Demand) -> None:
    """From the member that receives least, of several the one that sends most, to a relay, and from that to the others.

    If the relay runs out of ports, the root takes another relay; if the root does too, the tree grows deeper. Ports
    that are left go to pairs with demand.
    """
    weights = _weights(placement, demand)
    if not members:
        return
    root = max(members, key=lambda site: (-_total(demand, 1, site), _total(demand, 0, site)))
    waiting = {site for site in members if site != root}

    def attach(parent: str) -> str | None:
        def preference(site: str) -> tuple[int, tuple[int, int, int]]:
            return -weights.get(placement.pair(parent, site), 0), placement.nearness(parent, site)

        child = next((site for site in sorted(waiting, key=preference) if placement.join(parent, site)), None)
        if child is not None:
            waiting.remove(child)
        return child

    reached = []
    while (relay := attach(root)) is not None:
        reached.append(relay)
        while (leaf := attach(relay)) is not None:
            reached.append(leaf)
    for site in reached:  # grows meanwhile
        while (further := attach(site)) is not None:
            reached.append(further)
    _fill(placement, weights)


_SHAPES: Mapping[Shape, Callable[[Placement, Sequence[str], Demand], None]] = {
    "mesh": _mesh,
    "isolated-pods": _isolated_pods,
    "two-level-tree": _two_level_tree,
}


# -- helpers ----------------------------------------------------------------------------------------------------------


def _connect(placement: Placement, weights: Mapping[Pair, int]) -> None:
    """One circuit for each edge of a heaviest forest over these pairs, as far as there are ports (Kruskal)."""
    from networkx.utils import UnionFind  # noqa: PLC0415 - takes a third of a second, and few runs fit shapes

    joined = UnionFind(site for pair in weights for site in pair)
    for a, b in sorted(weights, key=lambda pair: (-weights[pair], placement.nearness(*pair))):
        if joined[a] != joined[b] and placement.join(a, b):
            joined.union(a, b)


def _fill(placement: Placement, weights: Mapping[Pair, int]) -> None:
    """Give circuits to the pair with the most bytes per circuit until no port is left.

    Pairs with demand and no circuit come first, the nearest in the ring before others; those without demand get one at
    most.
    """
    queue = [_urgency(placement, pair, weight) for pair, weight in weights.items()]
    heapq.heapify(queue)
    while queue:
        *_, pair = heapq.heappop(queue)
        weight = weights[pair]
        if (weight or not placement.count(*pair)) and placement.join(*pair) and weight:
            heapq.heappush(queue, _urgency(placement, pair, weight))


def _urgency(placement: Placement, pair: Pair, weight: int) -> tuple[int, float, tuple[int, int, int], Pair]:
    circuits = placement.count(*pair)
    first = 2 if not weight else 1 if circuits else 0
    return first, -weight / max(1, circuits), placement.nearness(*pair), pair


def _weights(placement: Placement, demand: Demand) -> dict[Pair, int]:
    """Bytes by pair, both directions together."""
    weights: dict[Pair, int] = {}
    for (a, b), count in demand.items():
        pair = placement.pair(a, b)
        weights[pair] = weights.get(pair, 0) + count
    return weights


def _total(demand: Demand, end: int, site: str) -> int:
    """What a site sends (end 0) or receives (end 1)."""
    return sum(count for pair, count in demand.items() if pair[end] == site)
