"""The one protocol between a policy that decides circuits and the keeper that has them changed.

The keeper (`controllers.keeper`) asks `on(event, view, now)` and is answered with a plan or with a reason to keep the
circuits as they are. A policy holds no state: all that has happened is in the view, so that one policy serves several
runs and the same question always has the same answer. Times are modelled seconds, sizes modelled bytes.

When it is asked: with Tick at time zero, and at the time for which it asked in Keep; with Phase at each announcement of
the workload; with EpochResult when a change has ended; with DemandSample and PortFailed if an engine has such. Never
while a change is under way: questions wait until it has ended (the slack of a phase shrinks meanwhile).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from controllers.epochs import Epoch, Matchings, OcsCircuit

Demand = Mapping[tuple[str, str], int]
"""Bytes by (source, destination)."""


# -- events: when a policy is asked -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time zero, or the time that the policy asked for."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase begins.

    demand: bytes by (source host, destination host). slack: seconds until its first byte needs the fabric.
    """

    name: str
    demand: Demand = field(default_factory=dict)
    slack: float = 0.0


@dataclass(frozen=True, slots=True)
class DemandSample:
    """What waits to be sent was looked at: bytes by (source host, destination host)."""

    demand: Demand


@dataclass(frozen=True, slots=True)
class PortFailed:
    """A port of an OCS is dead; it is among the free ports no more."""

    ocs: str
    port: int


@dataclass(frozen=True, slots=True)
class EpochResult:
    """How a change ended. `kept`: it was not begun, for its circuits were needed until it was too late."""

    outcome: Literal["committed", "aborted", "kept"]
    epoch: int
    reason: str = ""


PolicyEvent = Tick | Phase | DemandSample | PortFailed | EpochResult


# -- what a policy sees -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The fabric at the moment of a question.

    epoch: the committed one.
    demand: of the last phase announced or sample taken, by (source host, destination host).
    site_demand: the same by the nodes that are wired to OCSes (ToRs, as a rule), without what stays at one of them.
    free_ports: by OCS, the ports that a plan may use: wired and working. Those of the current circuits are among them.
    in_flight: bytes that still have to cross a circuit, those of transfers that wait for others of a running
        collective included; circuits without any are left out.
    reconfiguration: seconds that a change is dark.
    lead: seconds from a decision to the earliest instant at which circuits can go dark for it.
    last_at: the instant for which the latest change was planned, None before the first.
    """

    epoch: Epoch
    demand: Demand = field(default_factory=dict)
    site_demand: Demand = field(default_factory=dict)
    free_ports: Mapping[str, frozenset[int]] = field(default_factory=dict)
    in_flight: Mapping[OcsCircuit, int] = field(default_factory=dict)
    reconfiguration: float = 0.0
    lead: float = 0.0
    last_at: float | None = None


# -- what it answers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """Move to `matchings`.

    at: the instant at which the circuits that differ go dark; None: as soon as possible. One that has passed is made
        up for at once.
    reason: for the record.
    deadline: None: at `at`, whatever crosses the circuits then. Otherwise the change begins once nothing has to cross
        the circuits that it takes away, from `at` on; if that has not come by the deadline, it is given up.
    reconfiguration: seconds of dark time, None: those of the fabric.
    """

    matchings: Matchings
    at: float | None = None
    reason: str = ""
    deadline: float | None = None
    reconfiguration: float | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave the circuits, and a plan that waits for its instant, as they are. `again`: ask with Tick at that time."""

    reason: str
    again: float | None = None


class CircuitPolicy(Protocol):
    """What decides circuits."""

    @property
    def name(self) -> str:
        """How scenarios call it."""
        ...

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """Answer a question at modelled time `now`. Pure: equal arguments, equal answers."""
        ...

    def known(self) -> tuple[Matchings, ...]:
        """What it may choose, as far as it can say before time zero, in the order in which it would."""
        ...
