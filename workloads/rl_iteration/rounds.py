"""Naming the steps of an iteration, and coalescing many small messages into few large ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from workloads.cluster import Cluster
from workloads.collectives.schedule import Piece, split
from workloads.protocol import CollectiveKind
from workloads.step_kinds import CollectiveStep, ComputationStep


class Round(NamedTuple):
    """`steps` decode steps in a row, taken together."""

    number: int
    steps: int


def rounds_of(steps: int, rounds: int) -> Iterator[Round]:
    """`steps` in at most `rounds` parts that differ by one step at most."""
    for number, part in enumerate(split(Piece(0, steps), min(rounds, steps))):
        yield Round(number, part.bytes)


@dataclass(frozen=True, slots=True)
class Naming:
    """Names of one iteration's steps and phases: unique over all, and plain where there is but one iteration."""

    iteration: int
    iterations: int

    def name(self, *parts: object) -> str:
        """Of a step: "gradients.3", or "2.gradients.3" in the second of several iterations."""
        prefix = (self.iteration + 1,) if self.iterations > 1 else ()
        return ".".join(map(str, (*prefix, *parts)))

    def phase(self, name: str) -> str:
        """Of a phase: "training", or "training.2"."""
        return f"{name}.{self.iteration + 1}" if self.iterations > 1 else name


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the steps of one phase of one iteration."""

    cluster: Cluster
    naming: Naming
    phase: str

    def compute(
        self, label: str, *parts: object, seconds: float, ranks: Sequence[int], after: Sequence[str]
    ) -> ComputationStep:
        """The hosts of `ranks` compute."""
        hosts = tuple(dict.fromkeys(end.host for end in self.cluster.endpoints(ranks)))
        return ComputationStep(
            name=self.naming.name(label, *parts),
            phase=self.naming.phase(self.phase),
            after=tuple(after),
            seconds=seconds,
            hosts=hosts,
        )

    def collective(
        self,
        kind: CollectiveKind,
        label: str,
        *parts: object,
        size: int,
        ranks: Sequence[int],
        after: Sequence[str],
        merged: int = 1,
    ) -> CollectiveStep:
        """One collective by the usual algorithm of its kind; for others see `dataclasses.replace`."""
        return CollectiveStep(
            name=self.naming.name(label, *parts),
            phase=self.naming.phase(self.phase),
            after=tuple(after),
            kind=kind,
            group=tuple(ranks),
            sizes=(size,),
            merged=(merged,),
            label=label,
        )

    def exchange(
        self, label: str, *parts: object, pairs: Mapping[tuple[int, int], int], after: Sequence[str], merged: int = 1
    ) -> CollectiveStep:
        """Bytes by (sending rank, receiving rank), all at once."""
        ranks = sorted({rank for pair in pairs for rank in pair})
        places = {rank: place for place, rank in enumerate(ranks)}
        matrix = tuple((places[src], places[dst], size) for (src, dst), size in pairs.items())
        size = sum(pairs.values())
        step = self.collective("exchange", label, *parts, size=size, ranks=ranks, after=after, merged=merged)
        return replace(step, matrix=matrix)
