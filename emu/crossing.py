"""What crosses a fabric between its pods: by circuits, or by the electrical tier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from emu.overlap import host_of
from emu.records import FlowRecord
from topologies.fabric import Fabric, Port


@dataclass(frozen=True, slots=True)
class Crossing:
    """Payload bytes so far: those that left an OCS by a circuit, and those that a pod sent up to the core.

    A byte that takes two circuits in turn counts twice, one that was sent again once more. Acknowledgements have none.
    """

    circuits: int = 0
    core: int = 0

    def __sub__(self, earlier: Crossing) -> Crossing:
        return Crossing(self.circuits - earlier.circuits, self.core - earlier.core)


def circuit_ports(fabric: Fabric) -> tuple[Port, ...]:
    """The ports by which light leaves the OCSs."""
    return tuple(port for ocs in fabric.ocses for port in fabric.ports(ocs.name))


def core_ports(fabric: Fabric) -> tuple[Port, ...]:
    """The ports by which packets leave a pod for a packet switch that belongs to none: the core."""
    core = {node.name for node in fabric.switches if node.pod is None}
    inside = [node.name for node in fabric.switches if node.pod is not None]
    return tuple(port for name in inside for port in fabric.ports(name) if fabric.peer(port).node in core)


def between_pods(fabric: Fabric, flows: Iterable[FlowRecord]) -> int:
    """Bytes of the transfers, sent as packets, whose hosts are in different pods."""
    pods = {host.name: host.pod for host in fabric.hosts}
    return sum(row.bytes for row in flows if row.how == "packets" and pods[host_of(row.src)] != pods[host_of(row.dst)])
