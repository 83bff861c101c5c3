"""A fabric as the engine computes with it: numbered directed links, and the path that each pair of NICs has now."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from controllers.circuits import darkened
from controllers.epochs import Epoch, OcsCircuit
from controllers.paths import Forwarder
from controllers.routes import routes
from emu.model.maxmin import Bools, Floats
from topologies.fabric import Fabric, Port

Path = tuple[int, ...]
"""The directed links that a flow crosses, as indices into a network's arrays."""


_KEPT = 64
"""Sets of circuits whose routes are remembered: a rotation has so many at most, or computes them again."""


@dataclass(frozen=True, slots=True)
class _Routed:
    """The routes of one set of circuits, and the paths that were asked for so far."""

    forwarder: Forwarder
    paths: dict[tuple[Port, Port], Path | None] = field(default_factory=dict)


class Network:
    """The directed links of a fabric and the paths of the committed epoch.

    capacities: payload bits per second of each directed link (the line rate times `efficiency`).
    delays: seconds of each directed link.
    dark: which links carry nothing now, because they are the exit of a circuit that is being replaced. It has one
        place more than there are links, for the padding of paths.
    """

    def __init__(self, fabric: Fabric, initial: Epoch, seed: int, efficiency: float) -> None:
        self.fabric = fabric
        self.epoch = initial
        self.ports = tuple(port for link in fabric.links for port in (link.a, link.b))
        self._numbers = {port: number for number, port in enumerate(self.ports)}
        self.capacities: Floats = np.array([fabric.link(port).rate * efficiency for port in self.ports])
        self.delays: Floats = np.array([fabric.link(port).delay for port in self.ports])
        self.dark: Bools = np.zeros(len(self.ports) + 1, dtype=np.bool_)
        self._seed = seed
        self._seen: dict[frozenset[OcsCircuit], _Routed] = {}
        self._routed = self._routes()

    def number(self, port: Port) -> int:
        """The place in the arrays of the directed link on which a port transmits."""
        return self._numbers[port]

    def path(self, src: Port, dst: Port) -> Path | None:
        """The links from one NIC to another under the committed epoch's routes, None if packets never get there.

        A path through a circuit that is dark at this moment is a path: its packets are lost until the next epoch.
        """
        pair, paths = (src, dst), self._routed.paths
        if pair not in paths:
            hops = self._routed.forwarder.path(src, dst)
            paths[pair] = None if hops is None else tuple(self._numbers[port] for port in hops)
        return paths[pair]

    def delay(self, path: Path) -> float:
        """Seconds that a bit takes over the cables of a path."""
        return float(self.delays[list(path)].sum())

    def darken(self, coming: Epoch) -> None:
        """Begin the change to `coming`: circuits that it does not keep go dark, the routes stay."""
        for ocs, circuits in darkened(self.epoch, coming).items():
            self.dark[[self._numbers[Port(ocs, circuit.out_port)] for circuit in circuits]] = True

    def commit(self, epoch: Epoch) -> None:
        """End the change: the circuits of `epoch` shine, its routes hold."""
        self.dark[:] = False
        self.epoch = epoch
        self._routed = self._routes()

    def _routes(self) -> _Routed:
        """The routes of the committed epoch; those of circuits that come back again and again are kept."""
        if self.epoch.lit not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            self._seen[self.epoch.lit] = _Routed(Forwarder(self.fabric, routes(self.fabric, self.epoch, self._seed)))
        return self._seen[self.epoch.lit]
