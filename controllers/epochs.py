"""Epochs: committed sets of circuits, and when they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Circuit(NamedTuple):
    """Light from one OCS port to another, one way. A duplex circuit is two of these."""

    in_port: int
    out_port: int


Matching = frozenset[Circuit]
"""The circuits of one OCS. No two share an in_port, no two share an out_port."""


Matchings = Mapping[str, Matching]
"""By OCS: its circuits; one that is not named is all dark."""


class OcsCircuit(NamedTuple):
    """A circuit and the OCS that holds it."""

    ocs: str
    circuit: Circuit


class CircuitError(ValueError):
    """Circuits that an OCS cannot hold; the message names the OCS and the port."""


def duplex(pairs: Iterable[tuple[int, int]]) -> Matching:
    """The matching that joins each pair of ports both ways."""
    return frozenset(circuit for a, b in pairs for circuit in (Circuit(a, b), Circuit(b, a)))


def lit_by(matchings: Matchings) -> frozenset[OcsCircuit]:
    """Every circuit of these matchings with its OCS."""
    return frozenset(OcsCircuit(ocs, circuit) for ocs, circuits in matchings.items() for circuit in circuits)


@dataclass(frozen=True, slots=True)
class Epoch:
    """A number and the matchings that hold while it is committed; an OCS that is not named is all dark."""

    number: int = 0
    matchings: Mapping[str, Matching] = field(default_factory=dict)

    def circuits(self, ocs: str) -> Matching:
        """The circuits of one OCS, none if it is dark."""
        return self.matchings.get(ocs, frozenset())

    @property
    def lit(self) -> frozenset[OcsCircuit]:
        """Every circuit of every OCS: equal for epochs that light the same, whatever their numbers."""
        return lit_by(self.matchings)


@dataclass(frozen=True, slots=True)
class EpochChange:
    """At modelled second `at` the circuits that differ go dark; `reconfiguration` seconds later `epoch` is lit."""

    at: float
    epoch: Epoch
    reconfiguration: float
