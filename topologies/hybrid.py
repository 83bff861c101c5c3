"""A hybrid fabric: electrical ToRs, and a tier of optical circuit switches between the pods."""

from __future__ import annotations

from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder


@builder("hybrid")
def hybrid(
    *,
    pods: int = 4,
    hosts_per_pod: int = 4,
    nics: int = 1,
    gpus: int | None = None,
    uplinks: int = 2,
    ocses: int = 1,
    rate: Rate = 400_000_000_000,
    uplink_rate: Rate | None = None,
    electrical_rate: Rate | None = None,
    delay: Duration = 0.0,
    name: str = "hybrid",
) -> Fabric:
    """Pods of one electrical ToR each, joined by circuits of an OCS tier and, if asked for, by a thin electrical core.

    Args:
        pods: how many, each with one ToR; at least 2.
        hosts_per_pod: hosts below each ToR.
        nics: NICs of each host, all at the ToR of its pod, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        uplinks: ports of each ToR into the OCS tier.
        ocses: OCSs of the tier, each with the same number of every ToR's uplinks.
        rate: of the hosts' links, bit/s.
        uplink_rate: of the links into the OCS tier, bit/s; default: `rate`.
        electrical_rate: of one link per ToR to an electrical core switch, bit/s; default: no such switch, so that
            pods without a circuit cannot reach each other.
        delay: of every link and direction, seconds.
        name: how reports call it.

    Nodes: ToRs t0.., OCSs o0.., the core c0; hosts h0.. fill the pods in order. With n = hosts_per_pod * nics, ToR
    ports 1..n are the NICs in order, n+1..n+uplinks go to the OCS tier, n+uplinks+1 to the core. Counting ToRs i and
    uplinks j from 0: uplink j of ToR i goes to the OCS j mod ocses, there to port i * (uplinks / ocses) + j div ocses
    + 1 (so to port i * uplinks + j + 1 of a single OCS), and ToR i is port i + 1 of the core.

    Raises FabricError for impossible numbers.
    """
    gpus = check_hosts(nics, gpus)
    at_least(2, pods=pods)
    at_least(1, hosts_per_pod=hosts_per_pod, uplinks=uplinks, ocses=ocses)
    if uplinks % ocses:
        raise FabricError(f"ocses {ocses} does not divide the {uplinks} uplinks of a ToR")
    uplink_rate = rate if uplink_rate is None else uplink_rate
    sizes = {"pods": pods, "hosts_per_pod": hosts_per_pod, "nics": nics, "gpus": gpus}
    optics = {"uplinks": uplinks, "ocses": ocses, "uplink_rate": uplink_rate}
    rates = {"rate": rate, "electrical_rate": electrical_rate, "delay": delay}
    fabric = Fabric(name, parameters={**sizes, **optics, **rates})
    for pod in range(pods):
        fabric.add_switch(f"t{pod}", Kind.TOR, pod=pod, tier=1)
    for ocs in range(ocses):
        fabric.add_switch(f"o{ocs}", Kind.OCS, tier=2)
    _add_hosts(fabric, pods * hosts_per_pod, hosts_per_pod, nics, gpus, rate, delay)
    for pod in range(pods):
        for uplink in range(uplinks):
            port = Port(f"o{uplink % ocses}", pod * (uplinks // ocses) + uplink // ocses + 1)
            fabric.connect(fabric.next_port(f"t{pod}"), port, rate=uplink_rate, delay=delay)
    if electrical_rate is not None:
        _add_core(fabric, pods, electrical_rate, delay)
    return fabric.finish()


def _add_hosts(fabric: Fabric, hosts: int, per_pod: int, nics: int, gpus: int, rate: int, delay: float) -> None:
    for host in range(hosts):
        tor = f"t{host // per_pod}"
        fabric.add_host(f"h{host}", gpus=gpus, pod=host // per_pod)
        for nic in range(nics):
            fabric.connect(Port(f"h{host}", nic), fabric.next_port(tor), rate=rate, delay=delay)


def _add_core(fabric: Fabric, pods: int, rate: int, delay: float) -> None:
    fabric.add_switch("c0", Kind.EPS, tier=2)
    for pod in range(pods):
        fabric.connect(fabric.next_port(f"t{pod}"), Port("c0", pod + 1), rate=rate, delay=delay)
