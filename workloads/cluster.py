"""The hosts a workload runs on, and which rank sits where. Knows nothing of how the hosts are wired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from workloads.protocol import Endpoint


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host as a workload sees it: GPU i uses NIC i mod `nics`."""

    name: str
    nics: int = 1
    gpus: int = 1


@dataclass(frozen=True)
class Cluster:
    """Hosts in order. A rank is a GPU; ranks fill hosts in order."""

    hosts: tuple[HostSpec, ...]

    @cached_property
    def ranks(self) -> int:
        """How many GPUs there are."""
        return len(self._endpoints)

    def endpoint(self, rank: int) -> Endpoint:
        """The NIC that a rank's traffic uses. Raises IndexError for a rank that the cluster does not have."""
        if not 0 <= rank < self.ranks:
            raise IndexError(f"there is no rank {rank}; the cluster has ranks 0 to {self.ranks - 1}")
        return self._endpoints[rank]

    def endpoints(self, group: Sequence[int]) -> tuple[Endpoint, ...]:
        """The endpoints of a group of ranks, in its order."""
        return tuple(self.endpoint(rank) for rank in group)

    @cached_property
    def _endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(Endpoint(host.name, gpu % host.nics) for host in self.hosts for gpu in range(host.gpus))
