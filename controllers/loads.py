"""Which circuits traffic crosses, and who shares an uplink into the optical fabric: all that policies see of it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controllers.epochs import Circuit, Epoch, OcsCircuit
from controllers.paths import Forwarder
from controllers.routes import routes
from topologies.fabric import Fabric, Kind, Port


class Load(NamedTuple):
    """`bytes` that still have to go from one NIC to another."""

    src: Port
    dst: Port
    bytes: int


class CircuitLoads:
    """The circuits that each pair of NICs crosses while one epoch holds; each pair is looked up once."""

    def __init__(self, fabric: Fabric, epoch: Epoch, seed: int) -> None:
        """`seed`: the one that routes are drawn with."""
        self._fabric, self._epoch, self._seed = fabric, epoch, seed
        self._forwarder: Forwarder | None = None
        self._by_exit = {Port(ocs, circuit.out_port): OcsCircuit(ocs, circuit) for ocs, circuit in epoch.lit}
        self._crossed: dict[tuple[Port, Port], tuple[OcsCircuit, ...]] = {}

    def by_circuit(self, loads: Iterable[Load]) -> dict[OcsCircuit, int]:
        """Bytes that have to cross each circuit; circuits without any are left out."""
        total: Counter[OcsCircuit] = Counter()
        if self._by_exit:
            for load in loads:
                for circuit in self._circuits(load.src, load.dst):
                    total[circuit] += load.bytes
        return {circuit: count for circuit, count in total.items() if count}

    def _circuits(self, src: Port, dst: Port) -> tuple[OcsCircuit, ...]:
        pair = (src, dst)
        if pair not in self._crossed:
            if self._forwarder is None:
                self._forwarder = Forwarder(self._fabric, routes(self._fabric, self._epoch, self._seed))
            hops = self._forwarder.path(src, dst) or ()
            self._crossed[pair] = tuple(self._by_exit[port] for port in hops if port in self._by_exit)
        return self._crossed[pair]


def circuit_rate(fabric: Fabric, ocs: str, circuit: Circuit) -> int:
    """What a circuit carries, bit/s: the slower of the cables that it joins."""
    return min(fabric.link(Port(ocs, port)).rate for port in circuit)


def sites(fabric: Fabric) -> dict[str, str]:
    """By host: the node wired to an OCS that is the fewest electrical hops away (a ToR, or the host itself).

    Of several, the one that the breadth-first search meets first; hosts that reach none are left out. Hosts never
    forward for others.
    """
    wired = {fabric.peer(port).node for ocs in fabric.ocses for port in fabric.ports(ocs.name)}
    if not wired:
        return {}
    found = ((host.name, _nearest(fabric, host.name, wired)) for host in fabric.hosts)
    return {host: site for host, site in found if site is not None}


def _nearest(fabric: Fabric, host: str, wired: set[str]) -> str | None:
    queue, seen = deque([host]), {host}
    while queue:
        node = queue.popleft()
        if node in wired:
            return node
        if node != host and fabric.node(node).kind is Kind.HOST:
            continue
        for port in fabric.ports(node):
            peer = fabric.peer(port).node
            if peer not in seen and fabric.node(peer).kind is not Kind.OCS:
                seen.add(peer)
                queue.append(peer)
    return None


def between_sites(demand: Mapping[tuple[str, str], int], site_of: Mapping[str, str]) -> dict[tuple[str, str], int]:
    """Demand between hosts as demand between their sites; what stays at one, and hosts without one, are left out."""
    total: Counter[tuple[str, str]] = Counter()
    for (src, dst), count in demand.items():
        a, b = site_of.get(src), site_of.get(dst)
        if a is not None and b is not None and a != b:
            total[a, b] += count
    return {pair: count for pair, count in total.items() if count}
