"""What a policy sees of the fabric: the committed epoch, demand, usable ports, and what is in flight on circuits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from controllers.circuits import check_epoch, darkened
from controllers.epochs import CircuitError, Epoch, OcsCircuit
from controllers.loads import CircuitLoads, Load, between_sites, circuit_rate, sites
from controllers.policies.protocol import Demand, View
from topologies.fabric import Fabric


class Observer:
    """Makes the views of one run.

    loads: what still has to cross the fabric, asked only when someone looks.
    """

    def __init__(self, fabric: Fabric, initial: Epoch, seed: int, loads: Callable[[], Iterable[Load]]) -> None:
        self.demand: Demand = {}
        self.last_at: float | None = None
        self._fabric, self._seed, self._loads = fabric, seed, loads
        self._sites = sites(fabric)
        self._free = {ocs.name: frozenset(p.number for p in fabric.ports(ocs.name)) for ocs in fabric.ocses}
        self.enter(initial)

    def enter(self, epoch: Epoch) -> None:
        """Another epoch holds from now on."""
        self.epoch = epoch
        self._crossing = CircuitLoads(self._fabric, epoch, self._seed)

    def lose(self, ocs: str, port: int) -> None:
        """A port is dead from now on."""
        self._free[ocs] = self._free[ocs] - {port}

    def view(self, reconfiguration: float, lead: float) -> View:
        """The fabric now. What is in flight is worked out when it is first read, and then as of that moment."""
        return View(
            epoch=self.epoch,
            demand=self.demand,
            site_demand=between_sites(self.demand, self._sites),
            free_ports=dict(self._free),
            in_flight=_Lazily(self._in_flight),
            reconfiguration=reconfiguration,
            lead=lead,
            last_at=self.last_at,
        )

    def check(self, epoch: Epoch) -> None:
        """Raise CircuitError unless the OCSes can hold the epoch on the ports that work."""
        check_epoch(self._fabric, epoch)
        for ocs, circuit in sorted(epoch.lit):
            for port in circuit:
                if port not in self._free[ocs]:
                    raise CircuitError(f"{ocs}: port {port} has failed")

    def drain_time(self, coming: Epoch) -> float:
        """Seconds at line rate until all is over that still has to cross circuits which `coming` does not keep."""
        gone = darkened(self.epoch, coming)
        if not gone:
            return 0.0
        return max(
            (
                8 * count / circuit_rate(self._fabric, ocs, circuit)
                for (ocs, circuit), count in self._in_flight().items()
                if circuit in gone.get(ocs, ())
            ),
            default=0.0,
        )

    def _in_flight(self) -> dict[OcsCircuit, int]:
        return self._crossing.by_circuit(self._loads())


class _Lazily(Mapping[OcsCircuit, int]):
    """A mapping that is worked out when it is first read: most policies never look."""

    def __init__(self, make: Callable[[], Mapping[OcsCircuit, int]]) -> None:
        self._make = make
        self._made: Mapping[OcsCircuit, int] | None = None

    def _all(self) -> Mapping[OcsCircuit, int]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: OcsCircuit) -> int:
        return self._all()[key]

    def __iter__(self) -> Iterator[OcsCircuit]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
