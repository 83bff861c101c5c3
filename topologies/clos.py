"""Two tiers of packet switches in which every leaf reaches every spine: the folded Clos network, shared by builders.

Leaves are added and given their NICs by the builder; this wires the spines above them and gives the addresses that
two-level routing reads: NIC number i of leaf l is 10.(l div 256).(l mod 256).(i + 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.fabric import Fabric, FabricError, Kind, Port

MAX_LEAVES = 1 << 16
MAX_NICS_AT_LEAF = 253
_FIRST_ID = 2
_LEAF_TIER, _SPINE_TIER = 1, 2


@dataclass(frozen=True, slots=True)
class Spines:
    """The upper tier, and how leaves are joined to it.

    uplinks: of each leaf. count: spines; divides `uplinks`. rate, delay: of each uplink.
    """

    uplinks: int
    count: int
    rate: int
    delay: float = 0.0


def add_leaf(fabric: Fabric, leaf: int, *, pod: int | None = None) -> None:
    """Add the leaf t`leaf`."""
    if leaf >= MAX_LEAVES:
        raise FabricError(f"it needs more than {MAX_LEAVES} leaves, and addresses do not go further")
    fabric.add_switch(f"t{leaf}", Kind.TOR, pod=pod, tier=_LEAF_TIER)


def attach(fabric: Fabric, nic: Port, leaf: int, *, rate: int, delay: float) -> None:
    """Wire a NIC to the next port of a leaf and give it its address. Raises FabricError if addresses run out there."""
    port = fabric.next_port(f"t{leaf}")
    place = port.number - 1
    if place >= MAX_NICS_AT_LEAF:
        raise FabricError(f"it has more than {MAX_NICS_AT_LEAF} NICs at a leaf, and addresses do not go further")
    fabric.connect(nic, port, rate=rate, delay=delay)
    fabric.set_address(nic, f"10.{leaf >> 8}.{leaf & 255}.{place + _FIRST_ID}")


def add_spines(fabric: Fabric, leaves: int, spines: Spines) -> None:
    """Wire leaves t0..t(leaves-1) to spines s0..: uplink u of a leaf to spine u mod count.

    There it is port leaf * (uplinks / count) + u div count + 1. A lone leaf has no use for uplinks and gets none.
    Raises FabricError if the spines do not divide the uplinks.
    """
    if spines.count < 1 or spines.uplinks % spines.count:
        raise FabricError(f"spines {spines.count} does not divide the {spines.uplinks} uplinks of a leaf")
    if leaves < 2:
        return
    parallel = spines.uplinks // spines.count
    for spine in range(spines.count):
        fabric.add_switch(f"s{spine}", Kind.EPS, tier=_SPINE_TIER)
    for leaf in range(leaves):
        for uplink in range(spines.uplinks):
            turn, spine = divmod(uplink, spines.count)
            upper = Port(f"s{spine}", leaf * parallel + turn + 1)
            fabric.connect(fabric.next_port(f"t{leaf}"), upper, rate=spines.rate, delay=spines.delay)
