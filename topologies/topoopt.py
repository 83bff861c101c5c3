"""TopoOpt-like: every host wired straight to flat planes of circuits, which are set once for a job; hosts forward.

After TopoOpt (Wang et al., NSDI 2023). Servers have d interfaces, one into each of d flat planes of patch panels or
OCSs. The circuits are laid once, before the job begins, and traffic between servers without a circuit is forwarded by
servers on the way.

How hosts forward here: the part of a host that does it is a switch of its own, f0.., wired to the host's NICs inside
the box. So routes, the model and the lab treat it as any packet switch, and it forwards at the rate of its interfaces.
What forwarding costs a real server in processor time, memory bandwidth and latency is not modelled: results are the
best that such a fabric can do. Own and forwarded traffic share the interfaces.
"""

from __future__ import annotations

from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder


@builder("topoopt")
def topoopt(
    *,
    hosts: int = 16,
    nics: int = 4,
    gpus: int | None = None,
    degree: int | None = None,
    patch_panel: bool = True,
    rate: Rate = 400_000_000_000,
    delay: Duration = 0.0,
    name: str = "topoopt",
) -> Fabric:
    """Hosts with an interface into each of d flat circuit planes; the circuits hold for a job, and hosts forward.

    Like TopoOpt (Wang et al., NSDI 2023); the text of this module (topologies/topoopt.py) says how hosts forward.

    Args:
        hosts: how many; at least 2.
        nics: NICs of each host, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        degree: d, the planes, and so interfaces of each host into them; default: `nics`.
        patch_panel: whether the planes are patch panels (minutes to rewire, cheap), else OCSs; the wiring is the same.
        rate: of a NIC, bit/s. The interfaces share what a host's NICs have together: nics * rate / degree each.
        delay: of every circuit plane's link and direction, seconds.
        name: how reports call it.

    Nodes: hosts h0.., their forwarding parts f0.., planes o0... Ports: f(i) has the NICs of h(i) in order, then the
    interfaces; interface j goes to port i + 1 of plane o(j).

    Raises FabricError for impossible numbers.
    """
    gpus = check_hosts(nics, gpus)
    degree = nics if degree is None else degree
    at_least(2, hosts=hosts)
    at_least(1, degree=degree, rate=rate)
    interface, rest = divmod(nics * rate, degree)
    if rest:
        raise FabricError(f"degree {degree} does not divide the {nics * rate} bit/s of a host's NICs")
    sizes = {"hosts": hosts, "nics": nics, "gpus": gpus, "degree": degree}
    fabric = Fabric(name, parameters={**sizes, "patch_panel": patch_panel, "rate": rate, "delay": delay})
    for plane in range(degree):
        fabric.add_switch(f"o{plane}", Kind.OCS, tier=2, hardware="patch-panel" if patch_panel else "box")
    for host in range(hosts):
        fabric.add_host(f"h{host}", gpus=gpus)
        fabric.add_switch(f"f{host}", Kind.TOR, tier=1, hardware="host")
        for nic in range(nics):
            fabric.connect(Port(f"h{host}", nic), Port(f"f{host}", nic + 1), rate=rate)
        for plane in range(degree):
            lower, upper = Port(f"f{host}", nics + plane + 1), Port(f"o{plane}", host + 1)
            fabric.connect(lower, upper, rate=interface, delay=delay)
    fabric.notes = ("hosts forward for others, at the rate of their interfaces and at no cost to their processors",)
    return fabric.finish()
