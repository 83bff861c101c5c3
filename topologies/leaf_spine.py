"""Leaf-spine: the two-tier folded Clos network of today's data centres, optionally oversubscribed at the leaves."""

from __future__ import annotations

from topologies.clos import Spines, add_leaf, add_spines, attach
from topologies.fabric import Fabric, FabricError, Port
from topologies.parameters import Duration, Rate, at_least, check_hosts
from topologies.registry import builder


@builder("leaf-spine")
def leaf_spine(
    *,
    hosts: int | None = None,
    hosts_per_leaf: int = 4,
    leaves: int | None = None,
    nics: int = 1,
    gpus: int | None = None,
    oversubscription: int = 1,
    spines: int | None = None,
    rate: Rate = 400_000_000_000,
    uplink_rate: Rate | None = None,
    delay: Duration = 0.0,
    name: str = "leaf-spine",
) -> Fabric:
    """Leaves with hosts below them, each wired to every spine.

    After C. Clos, "A study of non-blocking switching networks" (1953), folded, as Alizadeh and Edsall describe it for
    data centres ("On the data path performance of leaf-spine datacenter fabrics", HOTI 2013).

    Args:
        hosts: how many; default: as many as the leaves hold. They fill leaf by leaf.
        hosts_per_leaf: hosts below a full leaf, with all their NICs.
        leaves: how many; default: as few as hold the hosts; 4 if these are not given either.
        nics: NICs of each host, 1 to 8.
        gpus: GPUs of each host; default: one per NIC.
        oversubscription: r, for r:1 at a full leaf: its NICs' rates together over those of its uplinks.
        spines: how many; default: one for each uplink of a leaf. Fewer make parallel links.
        rate: of the NICs' links, bit/s.
        uplink_rate: of the links between leaves and spines, bit/s; default: `rate`.
        delay: of every link and direction, seconds.
        name: how reports call it.

    Nodes: leaves t0.., spines s0... Ports of a leaf: NICs first, then uplinks; uplink u goes to spine u mod spines.
    Leaves that no host needs are not built, nor spines above a lone leaf. Addresses: 10.x.y.z with leaf x * 256 + y
    and z from 2, which two-level routing reads.

    Raises FabricError for impossible numbers, and for an oversubscription that no whole number of uplinks gives.
    """
    gpus = check_hosts(nics, gpus)
    at_least(1, hosts_per_leaf=hosts_per_leaf, oversubscription=oversubscription)
    hosts, leaves = _sizes(hosts, leaves, hosts_per_leaf)
    uplink_rate = rate if uplink_rate is None else uplink_rate
    at_least(1, rate=rate, uplink_rate=uplink_rate)
    uplinks = uplinks_for(hosts_per_leaf * nics, rate, oversubscription, uplink_rate)
    spines = uplinks if spines is None else spines
    sizes = {"hosts": hosts, "hosts_per_leaf": hosts_per_leaf, "leaves": leaves, "nics": nics, "gpus": gpus}
    rates = {"oversubscription": oversubscription, "spines": spines, "rate": rate, "uplink_rate": uplink_rate}
    fabric = Fabric(name, routing="two-level", parameters={**sizes, **rates, "delay": delay})
    for host in range(hosts):
        leaf, place = divmod(host, hosts_per_leaf)
        if place == 0:
            add_leaf(fabric, leaf, pod=leaf)
        fabric.add_host(f"h{host}", gpus=gpus, pod=leaf)
        for nic in range(nics):
            attach(fabric, Port(f"h{host}", nic), leaf, rate=rate, delay=delay)
    add_spines(fabric, -(-hosts // hosts_per_leaf), Spines(uplinks, spines, uplink_rate, delay))
    return fabric.finish()


def uplinks_for(nics: int, rate: int, oversubscription: int, uplink_rate: int) -> int:
    """How many uplinks make a leaf of so many NICs r:1 oversubscribed. Raises FabricError if the number is broken."""
    uplinks, rest = divmod(nics * rate, oversubscription * uplink_rate)
    if rest or not uplinks:
        wanted = nics * rate / (oversubscription * uplink_rate)
        raise FabricError(
            f"oversubscription {oversubscription} of {nics} NICs of {rate / 1e9:g} Gb/s below uplinks of "
            f"{uplink_rate / 1e9:g} Gb/s takes {wanted:g} uplinks, which is not a whole number"
        )
    return uplinks


def _sizes(hosts: int | None, leaves: int | None, hosts_per_leaf: int) -> tuple[int, int]:
    """Hosts and leaves, what was not given taken from the other."""
    if hosts is None:
        leaves = 4 if leaves is None else leaves
        at_least(1, leaves=leaves)
        return leaves * hosts_per_leaf, leaves
    needed = -(-hosts // hosts_per_leaf)
    leaves = needed if leaves is None else leaves
    at_least(1, hosts=hosts, leaves=leaves)
    if needed > leaves:
        raise FabricError(f"hosts {hosts} do not fit below {leaves} leaves of {hosts_per_leaf}")
    return hosts, leaves
