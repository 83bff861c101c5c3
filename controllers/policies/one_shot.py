"""Circuits that are laid once, for the demand of a whole job, and then hold: TopoOpt's way.

TopoOpt (Wang et al., NSDI 2023) searches topology and parallelism together before a job starts, and never changes a
circuit after that. Of its topology search this keeps two parts. Ring permutations: with n sites, site i sends to
site i + p for a stride p coprime to n, so that everybody reaches everybody; several strides near a geometric series
keep ways short. Matchings: what is left goes to the pairs with most bytes.

Ours, because rings of collectives are fixed here by their ranks: rings serve reachability, and matchings follow the
demand of all traffic, all-reduce included. The light of a flat plane is a permutation of its sites, one way each, found
as the best assignment; on other optical fabrics circuits are duplex and those of a mesh for the same demand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from controllers.epochs import Circuit, Epoch, Matchings
from controllers.policies.placement import Placement
from controllers.policies.planes import Planes
from controllers.policies.protocol import Demand
from controllers.policies.shapes import lay
from topologies.fabric import Fabric

_NEVER = -1.0
"""The worth of a circuit from a site to itself; all others are worth 0 or more."""


def one_shot(fabric: Fabric, demand: Demand, rings: int = 1) -> Matchings:
    """The circuits of a job.

    demand: its bytes by (source site, destination site), a site being a node that is wired to an OCS.
    rings: planes that carry ring permutations, at least 1; the others follow the demand.

    A flat fabric is one in which every site has one port at every OCS, and no OCS at another.
    """
    ports = {ocs.name: frozenset(port.number for port in fabric.ports(ocs.name)) for ocs in fabric.ocses}
    flat = _flat(Planes(fabric, Epoch(), ports), len(fabric.ocses))
    if flat is None:
        placement = Placement(fabric, Epoch(), ports)
        lay("mesh", placement, demand)
        return placement.matchings()
    return _permutations(flat, demand, rings)


def strides(sites: int, count: int) -> tuple[int, ...]:
    """So many different strides coprime to the number of sites, near 1, r, r^2, … with r = sites ** (1 / count).

    Fewer if there are not as many; with 1 and 2 sites there is 1 alone.
    """
    coprime = [p for p in range(1, max(2, sites)) if math.gcd(p, sites) == 1]
    chosen: list[int] = []
    for place in range(min(count, len(coprime))):
        wanted = sites ** (place / count)
        chosen.append(min((p for p in coprime if p not in chosen), key=lambda p: (abs(math.log(p / wanted)), p)))
    return tuple(chosen)


def _flat(planes: Planes, ocses: int) -> Mapping[str, Mapping[str, int]] | None:
    """By OCS: the port of each site, the same sites everywhere and in one order; None if the fabric is not flat."""
    flat = {
        plane: {site: ports[0].number for site, ports in sorted(of.items(), key=lambda item: item[1][0].number)}
        for plane, of in planes.terminals.items()
        if all(len(ports) == 1 for ports in of.values())
    }
    alike = len({frozenset(of) for of in flat.values()}) == 1
    return flat if len(flat) == ocses and len(planes.terminals) == ocses and alike else None


def _permutations(flat: Mapping[str, Mapping[str, int]], demand: Demand, rings: int) -> Matchings:
    """One permutation of the sites for each plane."""
    sites = list(next(iter(flat.values())))
    place = {site: number for number, site in enumerate(sites)}
    bytes_of = np.zeros((len(sites), len(sites)))
    for (a, b), count in demand.items():
        if a in place and b in place:
            bytes_of[place[a], place[b]] += count
    targets = _targets(bytes_of, len(flat), strides(len(sites), max(1, rings)))
    return {
        ocs: frozenset(Circuit(ports[sites[i]], ports[sites[j]]) for i, j in enumerate(target) if i != j)
        for (ocs, ports), target in zip(flat.items(), targets, strict=True)
    }


def _targets(bytes_of: npt.NDArray[np.float64], planes: int, ring_strides: Sequence[int]) -> Iterator[list[int]]:
    """By plane: where each site's light goes; rings first, then for the pairs with most bytes per circuit."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - takes a second, and few runs need it

    circuits: Counter[tuple[int, int]] = Counter()
    sites = len(bytes_of)
    per_circuit = bytes_of.copy()
    for plane in range(planes):
        if plane < len(ring_strides):
            target = [(site + ring_strides[plane]) % sites for site in range(sites)]
        else:
            worth = per_circuit.copy()
            np.fill_diagonal(worth, _NEVER * (1 + bytes_of.sum()))
            target = [int(site) for site in linear_sum_assignment(worth, maximize=True)[1]]
        for pair in enumerate(target):
            circuits[pair] += 1
            per_circuit[pair] = bytes_of[pair] / (circuits[pair] + 1)
        yield target
