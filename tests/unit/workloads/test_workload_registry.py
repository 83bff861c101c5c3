"""The lists of workloads and collectives are complete and one line each."""

from __future__ import annotations

from typing import get_args

from workloads.collectives import algorithms
from workloads.protocol import Algorithm, CollectiveKind
from workloads.registry import WORKLOADS, collectives


def test_every_kind_and_algorithm_has_one_line() -> None:
    entries = collectives()
    assert [entry.kind for entry in entries] == list(get_args(CollectiveKind))
    lines = [entry.description for entry in entries]
    for entry in entries:
        assert tuple(entry.algorithms) == algorithms(entry.kind)
        assert entry.default in entry.algorithms
        lines += entry.algorithms.values()
    assert all(line and "\n" not in line and len(line) < 100 for line in [*lines, *WORKLOADS.values()])


def test_every_algorithm_is_used() -> None:
    assert {name for entry in collectives() for name in entry.algorithms} == set(get_args(Algorithm))
