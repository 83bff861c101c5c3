"""RFabric: electrical ToRs below two tiers of optical circuit switches, beside a thin electrical network.

What is published (OrchestrRL, arXiv 2601.01209): circuit switches reconfigure the aggregation and the core layer on
demand, for the collectives of training, for generation under different parallelism and for weight sync between the
clusters. Summaries of the paper add that ToRs stay electrical, so that no NIC ever loses its carrier, and that an
always-on electrical network carries fine-grained traffic beside the circuits.

**Assumed here**, for port counts, the radix of the circuit switches and the exact wiring were not found:

- Every uplink of a ToR ends at a circuit switch of its pod's aggregation tier (OCS-Agg). For each such port, that
  switch has one port to the core tier (OCS-Core). So an uplink takes two ports of the first and one of the second.
- The uplinks are spread over planes. Each plane has one OCS-Agg in every pod and one OCS-Core that joins them; light
  does not change planes. There are as few planes as the radix of a circuit switch allows.
- Circuits within a pod stay in its OCS-Agg; those between pods pass OCS-Agg, OCS-Core, OCS-Agg. Any pairing of the
  ToR uplinks of a plane can be lit.
- The electrical network is one switch with one port to every ToR. Routes use it where circuits do not join two ToRs
  in fewer than eight hops.
- Training and generation pods are wired alike; the first hosts, so the first ranks, are those of the training pods.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.leaf_spine import uplinks_for
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder

ASSUMPTIONS = "topologies/rfabric.py"
"""Where it is written what is assumed of the wiring."""
ELECTRICAL_COST = 4
"""What routes count each of the two hops over the electrical network as; a hop over circuits counts 1."""


@builder("rfabric")
def rfabric(
    *,
    training_pods: int = 2,
    generation_pods: int = 2,
    tors_per_pod: int = 2,
    hosts_per_tor: int = 2,
    nics: int = 1,
    gpus: int | None = None,
    oversubscription: int = 1,
    planes: int | None = None,
    ocs_radix: int = 576,
    rate: Rate = 400_000_000_000,
    uplink_rate: Rate | None = None,
    electrical: bool = True,
    electrical_rate: Rate | None = None,
    delay: Duration = 0.0,
    name: str = "rfabric",
) -> Fabric:
    """Electrical ToRs, circuit switches at aggregation and core, a thin electrical network; wiring assumed.

    After RFabric of OrchestrRL (arXiv 2601.01209). The text of this module (topologies/rfabric.py) says what of it is
    published and what is assumed.

    Args:
        training_pods, generation_pods: how many of each; at least 1 and 0, and 2 together.
        tors_per_pod: ToRs of each pod.
        hosts_per_tor: hosts below each ToR, with all their NICs.
        nics: NICs of each host, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        oversubscription: r, for r:1 at a ToR: its NICs' rates together over those of its uplinks into the OCSs.
        planes: over which a ToR's uplinks are spread; default: as few as the radix allows.
        ocs_radix: ports of a circuit switch; the default is that of Polatis' switches in MixNet's table (SIGCOMM 2025).
        rate: of the NICs' links, bit/s.
        uplink_rate: of every link of the circuit switches, bit/s; default: `rate`.
        electrical: whether there is the thin electrical network.
        electrical_rate: of its one link to each ToR, bit/s; default: `rate`.
        delay: of every link and direction, seconds.
        name: how reports call it.

    Nodes: ToRs t0.. through the pods; OCS-Agg o(p * planes + q) for pod p and plane q; OCS-Core x0.., one per plane;
    the electrical switch c0. ToR ports: NICs, then uplinks, then the electrical link. Uplink u of a ToR is in plane
    u mod planes. With m = uplinks / planes, it is port (ToR in pod) * m + u div planes + 1 of its OCS-Agg, whose port
    to the core is tors_per_pod * m further on. Pod p's ports of the OCS-Core follow those of pod p - 1, in the order of
    the OCS-Agg's.

    Raises FabricError for impossible numbers, and for circuit switches of too few ports.
    """
    gpus = check_hosts(nics, gpus)
    counts = {"training_pods": training_pods, "tors_per_pod": tors_per_pod, "hosts_per_tor": hosts_per_tor}
    at_least(1, **counts, oversubscription=oversubscription, ocs_radix=ocs_radix)
    at_least(0, generation_pods=generation_pods)
    if training_pods + generation_pods < 2:
        raise FabricError("training_pods and generation_pods must be 2 together at least")
    uplink_rate = rate if uplink_rate is None else uplink_rate
    at_least(1, rate=rate, uplink_rate=uplink_rate)
    uplinks = uplinks_for(hosts_per_tor * nics, rate, oversubscription, uplink_rate)
    optics = _Optics(training_pods + generation_pods, tors_per_pod, uplinks, ocs_radix)
    planes = optics.fewest_planes() if planes is None else planes
    optics.check(planes)
    electrical_rate = (rate if electrical_rate is None else electrical_rate) if electrical else None
    sizes = {**counts, "generation_pods": generation_pods, "nics": nics, "gpus": gpus}
    shares = {"oversubscription": oversubscription, "planes": planes, "ocs_radix": ocs_radix, "electrical": electrical}
    rates = {"rate": rate, "uplink_rate": uplink_rate, "electrical_rate": electrical_rate, "delay": delay}
    fabric = Fabric(name, parameters={**sizes, **shares, **rates}, wiring_assumed=ASSUMPTIONS)
    fabric.notes = (f"wiring assumed, as {ASSUMPTIONS} says: the paper's was not published",)
    _add_tors(fabric, optics, hosts_per_tor, nics, gpus, rate, delay)
    _add_optics(fabric, optics, planes, uplink_rate, delay)
    if electrical_rate is not None:
        _add_electrical(fabric, optics.tors, electrical_rate, delay)
    return fabric.finish()


@dataclass(frozen=True, slots=True)
class _Optics:
    """The sizes of the optical tiers."""

    pods: int
    tors_per_pod: int
    uplinks: int
    radix: int

    @property
    def tors(self) -> int:
        return self.pods * self.tors_per_pod

    def south(self, planes: int) -> int:
        """Ports of an OCS-Agg to the ToRs of its pod; it has as many to the core."""
        return self.tors_per_pod * self.uplinks // planes

    def most(self, planes: int) -> int:
        """Ports of the largest circuit switch."""
        return self.south(planes) * max(2, self.pods)

    def fewest_planes(self) -> int:
        """The smallest number that divides a ToR's uplinks and keeps within the radix."""
        fitting = (n for n in range(1, self.uplinks + 1) if self.uplinks % n == 0)
        return next((n for n in fitting if self.most(n) <= self.radix), self.uplinks)

    def check(self, planes: int) -> None:
        """Raise FabricError for planes that do not divide the uplinks, or leave too many ports to a switch."""
        at_least(1, planes=planes)
        if self.uplinks % planes:
            raise FabricError(f"planes {planes} does not divide the {self.uplinks} uplinks of a ToR")
        if self.most(planes) > self.radix:
            raise FabricError(
                f"ocs_radix {self.radix} is too small: {self.tors} ToRs of {self.uplinks} uplinks in {planes} planes "
                f"need circuit switches of {self.most(planes)} ports"
            )


def _add_tors(fabric: Fabric, optics: _Optics, hosts: int, nics: int, gpus: int, rate: int, delay: float) -> None:
    for tor in range(optics.tors):
        pod = tor // optics.tors_per_pod
        fabric.add_switch(f"t{tor}", Kind.TOR, pod=pod, tier=1)
        for host in range(tor * hosts, (tor + 1) * hosts):
            fabric.add_host(f"h{host}", gpus=gpus, pod=pod)
            for nic in range(nics):
                fabric.connect(Port(f"h{host}", nic), fabric.next_port(f"t{tor}"), rate=rate, delay=delay)


def _add_optics(fabric: Fabric, optics: _Optics, planes: int, rate: int, delay: float) -> None:
    south = optics.south(planes)
    for number in range(optics.pods * planes):
        fabric.add_switch(f"o{number}", Kind.OCS, pod=number // planes, tier=2)
    for plane in range(planes):
        fabric.add_switch(f"x{plane}", Kind.OCS, tier=3)
    for tor in range(optics.tors):
        pod, place = divmod(tor, optics.tors_per_pod)
        for uplink in range(optics.uplinks):
            turn, plane = divmod(uplink, planes)
            port = Port(f"o{pod * planes + plane}", place * (optics.uplinks // planes) + turn + 1)
            fabric.connect(fabric.next_port(f"t{tor}"), port, rate=rate, delay=delay)
    for pod in range(optics.pods):
        for plane in range(planes):
            for place in range(1, south + 1):
                lower = Port(f"o{pod * planes + plane}", south + place)
                fabric.connect(lower, Port(f"x{plane}", pod * south + place), rate=rate, delay=delay)


def _add_electrical(fabric: Fabric, tors: int, rate: int, delay: float) -> None:
    fabric.add_switch("c0", Kind.EPS, tier=2)
    for tor in range(tors):
        lower, upper = fabric.next_port(f"t{tor}"), Port("c0", tor + 1)
        fabric.connect(lower, upper, rate=rate, delay=delay, cost=ELECTRICAL_COST)
