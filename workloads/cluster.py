"""The hosts a workload runs on, and which rank sits where. Knows nothing of how the hosts are wired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.protocol import Endpoint


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host as a workload sees it: GPU i uses NIC i mod `nics`."""

    name: str
    nics: int = 1
    gpus: int = 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts in order. A rank is a GPU; ranks fill hosts in order."""

    hosts: tuple[HostSpec, ...]

    @property
    def ranks(self) -> int:
        """How many GPUs there are."""
        return sum(host.gpus for host in self.hosts)

    def endpoint(self, rank: int) -> Endpoint:
        """The NIC that a rank's traffic uses. Raises IndexError for a rank that the cluster does not have."""
        if rank < 0:
            raise IndexError(f"rank {rank} is negative")
        left = rank
        for host in self.hosts:
            if left < host.gpus:
                return Endpoint(host.name, left % host.nics)
            left -= host.gpus
        raise IndexError(f"rank {rank} of {self.ranks}")

    def endpoints(self, group: Sequence[int]) -> tuple[Endpoint, ...]:
        """The endpoints of a group of ranks, in its order."""
        return tuple(self.endpoint(rank) for rank in group)
