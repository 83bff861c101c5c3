"""The kinds of steps that a static workload is made of.

A step consists of rounds, one after the other; the tasks of a round run together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from workloads.cluster import Cluster
from workloads.collectives import CollectiveError, bytes_by_hosts, check, default_algorithm
from workloads.protocol import Algorithm, Collective, CollectiveKind, Computation, Task, TaskId, Transfer

Demand = Mapping[tuple[str, str], int]


class StepError(ValueError):
    """Steps that cannot be carried out; the message names the step and what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """What all steps have.

    name: unique in the list; task ids begin with it.
    phase: steps of one phase that follow each other in the list are announced together; default: the name.
    at: not before this modelled second.
    after: names of earlier steps that must be over; None means the step before in the list.
    repeat: how many times, one after the other.
    """

    name: str
    phase: str = ""
    at: float = 0.0
    after: tuple[str, ...] | None = None
    repeat: int = 1

    @property
    def rounds(self) -> int:
        """How many rounds of tasks there are."""
        return self.repeat

    @property
    def duration(self) -> float:
        """Seconds that the step takes at least, whatever the fabric does."""
        return 0.0

    @abstractmethod
    def tasks(self, number: int, cluster: Cluster) -> tuple[Task, ...]:
        """The tasks of round `number`; a transfer's `after` names earlier ones of the same round."""

    @abstractmethod
    def demand(self, cluster: Cluster) -> Demand:
        """Bytes by (source host, destination host) over all rounds, without what stays inside a host."""

    def problems(self, cluster: Cluster) -> Iterator[str]:
        """What is wrong with the step, if anything."""
        if not self.name or set("#/") & set(self.name):
            yield "a step needs a name without '#' and '/'"
        if self.at < 0:
            yield f"at must not be negative, not {self.at}"
        if self.repeat < 1:
            yield f"repeat must be at least 1, not {self.repeat}"

    @property
    def phase_name(self) -> str:
        """The phase, or the step's own name if it is in none."""
        return self.phase or self.name

    def _round_name(self, number: int) -> str:
        return self.name if self.rounds == 1 else f"{self.name}#{number}"


@dataclass(frozen=True, kw_only=True)
class ComputationStep(Step):
    """`hosts` (default: all) compute for `seconds` of modelled time."""

    seconds: float
    hosts: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """All repetitions together."""
        return self.seconds * self.repeat

    def tasks(self, number: int, cluster: Cluster) -> tuple[Task, ...]:
        """One computation."""
        hosts = self.hosts or tuple(host.name for host in cluster.hosts)
        return (Computation(self._round_name(number), self.seconds, hosts, self.phase_name),)

    def demand(self, cluster: Cluster) -> Demand:
        """None: nothing crosses the fabric."""
        return {}

    def problems(self, cluster: Cluster) -> Iterator[str]:
        """Also: hosts that there are not, a negative duration."""
        yield from super().problems(cluster)
        if self.seconds < 0:
            yield f"seconds must not be negative, not {self.seconds}"
        unknown = set(self.hosts) - {host.name for host in cluster.hosts}
        if unknown:
            yield f"the cluster has no host {min(unknown)!r}"


@dataclass(frozen=True, kw_only=True)
class CollectiveStep(Step):
    """A collective, once for each of `sizes`, one after the other (layer buckets, or a sweep).

    sizes: S of each in bytes.
    merged: for each size how many of the workload's messages it stands for; empty: one each.
    algorithm: None takes the kind's default.
    group, root, chunks, label, matrix, pods: as in `Collective`.
    """

    kind: CollectiveKind
    group: tuple[int, ...]
    sizes: tuple[int, ...]
    merged: tuple[int, ...] = ()
    algorithm: Algorithm | None = None
    root: int = 0
    chunks: int = 1
    label: str = ""
    matrix: tuple[tuple[int, int, int], ...] = ()
    pods: tuple[int, ...] = ()

    @property
    def rounds(self) -> int:
        """All sizes, `repeat` times over."""
        return self.repeat * len(self.sizes)

    def collective(self, number: int) -> Collective:
        """The collective of round `number`."""
        index = number % len(self.sizes)
        return Collective(
            id=self._round_name(number),
            kind=self.kind,
            algorithm=self.algorithm or default_algorithm(self.kind),
            group=self.group,
            bytes=self.sizes[index],
            root=self.root,
            chunks=self.chunks,
            phase=self.phase_name,
            label=self.label or self.name,
            merged=self.merged[index] if self.merged else 1,
            matrix=self.matrix,
            pods=self.pods,
        )

    def tasks(self, number: int, cluster: Cluster) -> tuple[Task, ...]:
        """One collective."""
        return (self.collective(number),)

    def demand(self, cluster: Cluster) -> Demand:
        """From the collectives' moves; each different size is looked at once."""
        total: Counter[tuple[str, str]] = Counter()
        for size, times in Counter(self.sizes).items():
            for pair, moved in bytes_by_hosts(replace(self.collective(0), bytes=size), cluster).items():
                total[pair] += moved * times * self.repeat
        return total

    def problems(self, cluster: Cluster) -> Iterator[str]:
        """Also: no sizes, sizes without their `merged`, and what the collective itself cannot be."""
        yield from super().problems(cluster)
        if not self.sizes:
            yield "there are no sizes"
            return
        if self.merged and len(self.merged) != len(self.sizes):
            yield f"merged has {len(self.merged)} entries for {len(self.sizes)} sizes"
            return
        try:
            check(replace(self.collective(0), bytes=min(self.sizes)), cluster)
        except CollectiveError as error:
            yield str(error)


@dataclass(frozen=True, kw_only=True)
class TransferStep(Step):
    """Transfers that start together, or after earlier ones of the set that they name in `after`."""

    transfers: tuple[Transfer, ...]

    def tasks(self, number: int, cluster: Cluster) -> tuple[Task, ...]:
        """All of them, with the round's name before their ids."""
        prefix = self._round_name(number)
        return tuple(
            replace(
                transfer,
                id=f"{prefix}/{transfer.id}",
                after=tuple(f"{prefix}/{other}" for other in transfer.after),
                phase=self.phase_name,
            )
            for transfer in self.transfers
        )

    def demand(self, cluster: Cluster) -> Demand:
        """The sizes, added up."""
        total: Counter[tuple[str, str]] = Counter()
        for transfer in self.transfers:
            if transfer.src.host != transfer.dst.host:
                total[transfer.src.host, transfer.dst.host] += transfer.bytes * self.repeat
        return total

    def problems(self, cluster: Cluster) -> Iterator[str]:
        """Also: no transfers, ids that are not unique, hosts that there are not, `after` that names no earlier one."""
        yield from super().problems(cluster)
        if not self.transfers:
            yield "there are no transfers"
        hosts = {host.name for host in cluster.hosts}
        earlier: set[TaskId] = set()
        for transfer in self.transfers:
            if transfer.id in earlier:
                yield f"two transfers are called {transfer.id!r}"
            for end in (transfer.src, transfer.dst):
                if end.host not in hosts:
                    yield f"transfer {transfer.id!r}: the cluster has no host {end.host!r}"
            for other in set(transfer.after) - earlier:
                yield f"transfer {transfer.id!r}: after names {other!r}, which is no earlier transfer of the step"
            earlier.add(transfer.id)
