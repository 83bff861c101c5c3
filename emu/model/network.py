"""A fabric as the engine computes with it: numbered directed links, and the path that each pair of NICs has now."""

from __future__ import annotations

import numpy as np

from controllers.circuits import darkened
from controllers.epochs import Epoch
from controllers.paths import Forwarder
from controllers.routes import routes
from emu.model.maxmin import Bools, Floats
from topologies.fabric import Fabric, Port

Path = tuple[int, ...]
"""The directed links that a flow crosses, as indices into a network's arrays."""


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
        self._paths: dict[tuple[Port, Port], Path | None] = {}
        self._forwarder = Forwarder(fabric, routes(fabric, initial, seed))

    def path(self, src: Port, dst: Port) -> Path | None:
        """The links from one NIC to another under the committed epoch's routes, None if packets never get there.

        A path through a circuit that is dark at this moment is a path: its packets are lost until the next epoch.
        """
        pair = (src, dst)
        if pair not in self._paths:
            hops = self._forwarder.path(src, dst)
            self._paths[pair] = None if hops is None else tuple(self._numbers[port] for port in hops)
        return self._paths[pair]

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
        self._paths.clear()
        self._forwarder = Forwarder(self.fabric, routes(self.fabric, epoch, self._seed))
