"""Which algorithms there are for which kind of collective.

Every module of this package may define `LOWERINGS`, a tuple of `Lowering`; all of them are found at first use. A new
algorithm is one new module (and, for the type checker, its name in `workloads.protocol.Algorithm`).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from workloads.collectives.schedule import Schedule
from workloads.protocol import Algorithm, Collective, CollectiveKind


class CollectiveError(ValueError):
    """A collective that cannot be carried out as asked; the message names it and what would be valid."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """One algorithm for one kind. All functions are asked for at least two ranks and one byte.

    description: one line for lists of what there is.
    build: adds the moves of a collective to a schedule.
    steps: dependent messages on the critical path, one after the other on a connection included.
    sent: bytes sent by each rank of the group, in units of the collective's bytes.
    pairs: bytes by (sender, receiver), each pair once, where that is quicker than to add up the moves.
    default: what is taken if a workload names no algorithm; one per kind.
    """

    kind: CollectiveKind
    algorithm: Algorithm
    description: str
    build: Callable[[Schedule, Collective], None]
    steps: Callable[[Collective], int]
    sent: Callable[[Collective], Sequence[Fraction]]
    default: bool = False
    pairs: Callable[[Collective], Iterable[tuple[int, int, int]]] | None = None


@functools.cache
def lowerings() -> Mapping[CollectiveKind, Mapping[Algorithm, Lowering]]:
    """Every algorithm by kind and name. Raises CollectiveError if two modules claim the same."""
    found: dict[CollectiveKind, dict[Algorithm, Lowering]] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for lowering in getattr(importlib.import_module(f"workloads.collectives.{module.name}"), "LOWERINGS", ()):
            of_kind = found.setdefault(lowering.kind, {})
            if lowering.algorithm in of_kind:
                raise CollectiveError(f"{lowering.kind} by {lowering.algorithm} is defined twice")
            of_kind[lowering.algorithm] = lowering
    return found


def algorithms(kind: CollectiveKind) -> tuple[Algorithm, ...]:
    """The algorithms that can carry out a kind. Raises CollectiveError for a kind that does not exist."""
    try:
        return tuple(lowerings()[kind])
    except KeyError:
        raise CollectiveError(f"no collective {kind!r}; there are: {', '.join(sorted(lowerings()))}") from None


def default_algorithm(kind: CollectiveKind) -> Algorithm:
    """The algorithm that is taken if none is named."""
    return next(name for name in algorithms(kind) if lowerings()[kind][name].default)


def lowering_of(kind: CollectiveKind, algorithm: Algorithm) -> Lowering:
    """The lowering of a kind by an algorithm. Raises CollectiveError that lists the valid algorithms."""
    valid = algorithms(kind)
    if algorithm not in valid:
        raise CollectiveError(f"no {kind} by {algorithm!r}; valid algorithms: {', '.join(valid)}")
    return lowerings()[kind][algorithm]
