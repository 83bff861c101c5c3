"""When which circuits were lit: the epochs of a repeat, put together from the tables of circuits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controllers.epochs import Circuit, Epoch, OcsCircuit
from emu.report.series import Series, numbers, texts


@dataclass(frozen=True, slots=True)
class Span:
    """One epoch as it was: modelled seconds from the barrier after its circuits until the next ones' first delete.

    change: when the circuits before it went dark; its own start for epoch 0.
    """

    epoch: Epoch
    change: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Light:
    """One circuit, lit without a break from `start` to `end`, modelled seconds."""

    circuit: OcsCircuit
    start: float
    end: float


def spans(series: Series, repeat: int, first: Epoch) -> list[Span]:
    """The epochs of a repeat in order. first: epoch 0, in case that the tables do not have its circuits."""
    held = _matchings(series, repeat)
    table = series.circuits[series.circuits["repeat"] == repeat]
    committed = np.array([text.startswith("committed") for text in texts(table, "outcome")], dtype=bool)
    changes = sorted(
        zip(
            numbers(table, "dark_at_s")[committed],
            numbers(table, "lit_at_s")[committed],
            numbers(table, "epoch")[committed].astype(int),
            strict=True,
        )
    )
    starts = [(0.0, 0.0, held.get(0, first)), *((dark, lit, held.get(n, Epoch(n))) for dark, lit, n in changes)]
    ends = [float(dark) for dark, _, _ in changes] + [series.end(repeat)]
    return [
        Span(epoch, float(dark), float(lit), max(end, float(lit)))
        for (dark, lit, epoch), end in zip(starts, ends, strict=True)
    ]


def lights(found: Sequence[Span]) -> list[Light]:
    """Every circuit while it was lit; one that the next epoch keeps shines on through the change."""
    out: list[Light] = []
    since: dict[OcsCircuit, float] = {}
    for place, span in enumerate(found):
        kept = found[place + 1].epoch.lit if place + 1 < len(found) else frozenset()
        for circuit in sorted(span.epoch.lit):
            begun = since.setdefault(circuit, span.start)
            if circuit not in kept:
                out.append(Light(circuit, begun, span.end))
                del since[circuit]
    return sorted(out, key=lambda light: (light.circuit, light.start))


def _matchings(series: Series, repeat: int) -> dict[int, Epoch]:
    """By number, the epochs that `circuit_use` tells of."""
    table = series.circuit_use[series.circuit_use["repeat"] == repeat].dropna(subset=["out_port"])
    found: dict[int, dict[str, set[Circuit]]] = {}
    columns = (table["epoch"], table["ocs"], table["in_port"], table["out_port"])
    for number, ocs, entry, leaving in zip(*columns, strict=True):
        found.setdefault(int(number), {}).setdefault(str(ocs), set()).add(Circuit(int(entry), int(leaving)))
    return {
        number: Epoch(number, {ocs: frozenset(circuits) for ocs, circuits in by_ocs.items()})
        for number, by_ocs in found.items()
    }
