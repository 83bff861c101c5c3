"""What workloads and collectives there are, in one line each, for lists and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workloads.collectives import default_algorithm, lowerings
from workloads.protocol import Algorithm, CollectiveKind

WORKLOADS: Mapping[str, str] = {
    "collectives": "collectives and computations in steps, one after the other or side by side",
    "rl-iteration": "training, generation with switched parallelism and weight sync, sized from a model",
    "flow-list": "flows from a file: an htsim connection matrix or CSV",
}
"""The kinds of workload, as a scenario names them."""

_COLLECTIVES: Mapping[CollectiveKind, str] = {
    "all-reduce": "every rank ends with the sum of all ranks' tensors",
    "all-gather": "every rank ends with all ranks' pieces",
    "reduce-scatter": "every rank ends with its piece of the sum",
    "all-to-all": "every rank sends a different block to every other",
    "exchange": "pairs of ranks send what a matrix says",
    "broadcast": "every rank ends with the root's tensor",
    "permutation": "every rank sends to one other and receives from one other",
    "incast": "every rank sends to the root at once",
}


@dataclass(frozen=True, slots=True)
class CollectiveEntry:
    """A kind of collective, and a line on each algorithm for it; `default` is what a workload gets that names none."""

    kind: CollectiveKind
    description: str
    algorithms: Mapping[Algorithm, str]
    default: Algorithm


def collectives() -> tuple[CollectiveEntry, ...]:
    """Every kind of collective, the most used first; kinds that have no line here come last."""
    found = lowerings()
    kinds = [kind for kind in _COLLECTIVES if kind in found] + [kind for kind in found if kind not in _COLLECTIVES]
    return tuple(
        CollectiveEntry(
            kind,
            _COLLECTIVES.get(kind, ""),
            {name: lowering.description for name, lowering in found[kind].items()},
            default_algorithm(kind),
        )
        for kind in kinds
    )
