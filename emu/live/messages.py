"""What passes between an open lab and the process that uses it, pickled: both ends are the same program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from controllers.decisions import Decision
from controllers.epochs import Epoch, Matchings
from emu.measurement import CircuitChange
from emu.records import FailureRecord, FlowRecord, Trace
from emu.scale import Scale
from emu.scenario.build import BuiltFabric
from workloads.protocol import Action, Orchestrator


@dataclass(frozen=True, slots=True)
class Setup:
    """Which lab to build. scenario: canonical JSON, of which only emulation, transport and seed count."""

    scenario: str
    built: BuiltFabric
    scale: Scale


@dataclass(frozen=True, slots=True)
class Call:
    """Do this; one `Answer` follows, after any number of `Ask`."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to. problem: "" or why it failed; kind: whether that was bad input, the lab, or a defect."""

    value: Any = None
    problem: str = ""
    kind: Literal["input", "lab", "defect"] = "lab"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to what stayed with the user: `policy` or `orchestrator`, with the arguments of its `on`."""

    whom: Literal["policy", "orchestrator"]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to an `Ask`; `raised`: it raised an exception, which the user's side keeps."""

    value: Any = None
    raised: bool = False


@dataclass(frozen=True, slots=True)
class PolicyStub:
    """Stands for a policy that stayed with the user: what is asked of it before time zero."""

    name: str
    known: tuple[Matchings, ...]


Decider = PolicyStub | Literal["fabric", "static"]
"""Who decides circuits: the user's policy, the fabric's own, or nobody."""
Plan = tuple[tuple[float, Action], ...]
"""Actions, each with the modelled second at which it is taken."""
Work = Orchestrator | Plan | None
"""What to run: an orchestrator, or actions by the clock; None: an orchestrator that stayed with the user."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What came of a workload in an open lab. Times in modelled seconds from time zero, sizes in modelled bytes.

    trace: flows, collectives, phases, computations and failures. changes: of circuits, in order. decisions: what was
    decided about circuits, with reasons. epoch: the circuits that hold at the end. late: connections that had to be
    opened after time zero.
    """

    trace: Trace
    changes: list[CircuitChange] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    epoch: Epoch = field(default_factory=Epoch)
    late: int = 0

    @property
    def complete(self) -> bool:
        """Whether everything came to its end."""
        return self.trace.complete

    @property
    def flows(self) -> dict[str, FlowRecord]:
        """By id, every transfer that was received whole."""
        return {row.id: row for row in self.trace.flows}

    @property
    def failures(self) -> list[FailureRecord]:
        """What could not be finished, and why."""
        return self.trace.failures
