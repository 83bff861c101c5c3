"""The k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008), optionally oversubscribed or partly filled."""

from __future__ import annotations

from dataclasses import dataclass

from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder

_FIRST_ID = 2
"""The last octet of the first NIC at an edge switch; 0 and 1 stay free, as in the paper (1 is the switch's own)."""
_MAX_PODS = 256
_MAX_IDS = 253


@builder("fat-tree")
def fat_tree(
    *,
    k: int | None = None,
    hosts: int | None = None,
    nics: int = 1,
    gpus: int | None = None,
    oversubscription: int = 1,
    rate: Rate = 400_000_000_000,
    delay: Duration = 0.0,
    name: str = "fat-tree",
) -> Fabric:
    """A k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.

    Args:
        k: ports of a switch (even). Default: the smallest that holds the hosts; 4 if these are not given either.
        hosts: how many; default: as many as fit, r * k^3 / 4 NICs being the room.
        nics: NICs of each host, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        oversubscription: r, for r:1 at the edge: an edge switch has r * k/2 NICs below k/2 uplinks.
        rate: of every link, bit/s.
        delay: of every link and direction, seconds.
        name: how reports call it.

    NICs fill the edge ports in order, edge by edge and pod by pod; a host takes the next `nics` ports, so its NICs
    share an edge switch unless its ports run out, and then go on at the next one. Switches and ports that no host can
    use are not built: a lone edge switch has no uplinks, a lone pod no cores. The fabric's note says k and how full
    it is.

    Nodes: edge switches t0.., aggregation a0.., cores c0.., numbered through the pods; core c(i * k/2 + j) joins the
    i-th aggregation switches by their j-th uplinks. Ports: NICs or lower switches first, uplinks after them.
    Addresses: 10.pod.edge.id with ids from 2, which is what two-level routing reads.

    Raises FabricError if k is odd, the hosts do not fit, or addresses run out (256 pods, 253 NICs at an edge switch).
    """
    gpus = check_hosts(nics, gpus)
    at_least(1, oversubscription=oversubscription)
    if hosts is not None:
        at_least(1, hosts=hosts)
    if k is None:
        k = 4 if hosts is None else _smallest(hosts * nics, oversubscription)
    shape = _Shape(k, oversubscription)
    shape.check()
    hosts = shape.room // nics if hosts is None else hosts
    shape.check_room(hosts, nics)
    given = {"k": k, "hosts": hosts, "nics": nics, "gpus": gpus, "oversubscription": oversubscription}
    fabric = Fabric(name, routing="two-level", parameters={**given, "rate": rate, "delay": delay})
    fabric.notes = (shape.note(hosts * nics),)
    return _Wiring(fabric, shape, rate, delay).fill(hosts, nics, gpus)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes that follow from k and r:1."""

    k: int
    oversubscription: int

    @property
    def half(self) -> int:
        return self.k // 2

    @property
    def below(self) -> int:
        """NICs at an edge switch."""
        return self.oversubscription * self.half

    @property
    def room(self) -> int:
        """NICs in all."""
        return self.k * self.half * self.below

    def note(self, nics: int) -> str:
        """What results should say of k and how far the tree is filled."""
        pods = -(-nics // (self.half * self.below))
        text = f"k={self.k} with {nics} of {self.room} NICs, in {pods} of {self.k} pods"
        return text if nics == self.room else f"{text}; what no host can use is not built"

    def check(self) -> None:
        if self.k < 2 or self.k % 2:
            raise FabricError(f"k must be an even number from 2 on, not {self.k}")
        if self.k > _MAX_PODS or self.below > _MAX_IDS:
            raise FabricError(
                f"k={self.k} with oversubscription {self.oversubscription} needs {self.k} pods and {self.below} NICs "
                f"at an edge switch; addresses allow {_MAX_PODS} and {_MAX_IDS}"
            )

    def check_room(self, hosts: int, nics: int) -> None:
        if not 1 <= hosts <= self.room // nics:
            raise FabricError(
                f"k={self.k} with oversubscription {self.oversubscription} has room for {self.room} NICs, so for "
                f"{self.room // nics} hosts of {nics}, not {max(hosts, 1)}"
            )


def _smallest(nics: int, oversubscription: int) -> int:
    """The smallest even k whose fat-tree has room for that many NICs."""
    k = 2
    while _Shape(k, oversubscription).room < nics:
        k += 2
    return k


@dataclass(frozen=True, slots=True)
class _Wiring:
    """Wires a fat-tree from the hosts upward."""

    fabric: Fabric
    shape: _Shape
    rate: int
    delay: float

    def fill(self, hosts: int, nics: int, gpus: int) -> Fabric:
        """Hosts first, then only the switches above them that they can use."""
        edges = -(-hosts * nics // self.shape.below)
        pods = -(-edges // self.shape.half)
        for edge in range(edges):
            self.fabric.add_switch(f"t{edge}", Kind.TOR, pod=edge // self.shape.half, tier=1)
        self._attach(hosts, nics, gpus)
        if edges > 1:
            for edge in range(edges):
                self._aggregate(edge)
        if pods > 1:
            for pod in range(pods):
                self._core(pod)
        return self.fabric.finish()

    def _attach(self, hosts: int, nics: int, gpus: int) -> None:
        for host in range(hosts):
            for nic in range(nics):
                edge, place = divmod(host * nics + nic, self.shape.below)
                pod, row = divmod(edge, self.shape.half)
                if nic == 0:
                    self.fabric.add_host(f"h{host}", gpus=gpus, pod=pod)
                port = Port(f"h{host}", nic)
                self._connect(port, Port(f"t{edge}", place + 1))
                self.fabric.set_address(port, f"10.{pod}.{row}.{place + _FIRST_ID}")

    def _aggregate(self, edge: int) -> None:
        """Wire an edge switch to the aggregation switches of its pod."""
        pod, row = divmod(edge, self.shape.half)
        for column in range(self.shape.half):
            aggregation = f"a{pod * self.shape.half + column}"
            if row == 0:
                self.fabric.add_switch(aggregation, Kind.EPS, pod=pod, tier=2)
            self._connect(Port(f"t{edge}", self.shape.below + column + 1), Port(aggregation, row + 1))

    def _core(self, pod: int) -> None:
        """Wire the aggregation switches of a pod to all cores."""
        half = self.shape.half
        for number in range(half * half):
            column, uplink = divmod(number, half)
            if pod == 0:
                self.fabric.add_switch(f"c{number}", Kind.EPS, tier=3)
            aggregation = f"a{pod * half + column}"
            self._connect(Port(aggregation, half + uplink + 1), Port(f"c{number}", pod + 1))

    def _connect(self, lower: Port, upper: Port) -> None:
        self.fabric.connect(lower, upper, rate=self.rate, delay=self.delay)
