"""A fabric as the engine computes with it: numbered directed links and NICs, and the paths that NICs have now."""

from __future__ import annotations

import numpy as np

from controllers.circuits import darkened, with_dark
from controllers.epochs import Epoch, OcsCircuit
from controllers.hops import Hops
from controllers.routes import routes
from emu.model.maxmin import Bools, Floats, Ints, Links
from topologies.fabric import Fabric, FabricError, Port

Path = tuple[int, ...]
"""The directed links that a flow crosses, as indices into a network's arrays."""


_KEPT = 64
"""Sets of circuits whose routes are remembered: a rotation has so many at most, or computes them again."""


class Network:
    """The directed links of a fabric and the paths of the committed epoch.

    capacities: payload bits per second of each directed link (the line rate times `efficiency`).
    delays: seconds of each directed link, with a last place of 0 for the padding of paths.
    dark: which links carry nothing now, because they are the exit of a circuit that is being replaced. It has one
        place more than there are links, for the padding of paths.
    nics: how many NICs there are; they are numbered as in `fabric.all_nics`.
    """

    def __init__(self, fabric: Fabric, initial: Epoch, seed: int, efficiency: float) -> None:
        self.fabric = fabric
        self.epoch = initial
        self.ports = tuple(port for link in fabric.links for port in (link.a, link.b))
        self._numbers = {port: number for number, port in enumerate(self.ports)}
        self._nics = {nic: number for number, nic in enumerate(fabric.all_nics)}
        self.nics = len(self._nics)
        self.capacities: Floats = np.array([fabric.link(port).rate * efficiency for port in self.ports])
        self.delays: Floats = np.array([*(fabric.link(port).delay for port in self.ports), 0.0])
        self.dark: Bools = np.zeros(len(self.ports) + 1, dtype=np.bool_)
        self._seed = seed
        self._seen: dict[frozenset[OcsCircuit], Hops] = {}
        self._hops = self._routed(self.epoch)

    @property
    def padding(self) -> int:
        """What fills the rows of paths that are shorter than others: the number of links."""
        return len(self.ports)

    def number(self, port: Port) -> int:
        """The place in the arrays of the directed link on which a port transmits."""
        return self._numbers[port]

    def nic(self, port: Port) -> int:
        """The number of a NIC. Raises FabricError for a port that is none."""
        try:
            return self._nics[port]
        except KeyError:
            raise FabricError(f"fabric {self.fabric.name}: {port} is no NIC") from None

    def nic_rates(self) -> Floats:
        """Payload bits per second that each NIC sends at most."""
        return self.capacities[self._hops.nics]

    def paths(self, src: Ints, dst: Ints) -> Links:
        """The links from NICs to NICs under the committed epoch's routes, one padded row for each pair.

        A row of padding alone has no path. A path through a circuit that is dark at this moment is a path: its packets
        are lost until the next epoch.
        """
        return self._hops.paths(src, dst)

    def path(self, src: Port, dst: Port) -> Path | None:
        """The path of one pair of NICs, None if packets never get there."""
        row = self.paths(np.array([self.nic(src)]), np.array([self.nic(dst)]))[0]
        links = tuple(int(link) for link in row if link < self.padding)
        return links or None

    def travel(self, paths: Links) -> Floats:
        """Seconds that a bit takes over the cables of each path."""
        return np.asarray(self.delays[paths].sum(axis=1))

    def leaving(self, coming: Epoch) -> Bools:
        """The exits of the circuits that `coming` does not keep; one place more than there are links, for padding."""
        links = np.zeros(self.padding + 1, dtype=np.bool_)
        for ocs, circuits in darkened(self.epoch, coming).items():
            links[[self._numbers[Port(ocs, circuit.out_port)] for circuit in circuits]] = True
        return links

    def detour(self, coming: Epoch) -> None:
        """Packet switches route as if the circuits that `coming` does not keep were dark already."""
        self._hops = self._routed(with_dark(self.epoch, coming))

    def darken(self, coming: Epoch) -> None:
        """Begin the change to `coming`: circuits that it does not keep go dark, the routes stay."""
        self.dark |= self.leaving(coming)

    def paths_in(self, coming: Epoch, src: Ints, dst: Ints) -> Links:
        """As `paths`, under the routes of an epoch that is not committed."""
        return self._routed(coming).paths(src, dst)

    def commit(self, epoch: Epoch) -> None:
        """End the change: the circuits of `epoch` shine, its routes hold."""
        self.dark[:] = False
        self.epoch = epoch
        self._hops = self._routed(self.epoch)

    def _routed(self, epoch: Epoch) -> Hops:
        """The routes of an epoch; those of circuits that come back again and again are kept."""
        if epoch.lit not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            self._seen[epoch.lit] = Hops(self.fabric, routes(self.fabric, epoch, self._seed))
        return self._seen[epoch.lit]
