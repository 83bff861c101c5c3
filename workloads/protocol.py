"""The one protocol between what wants to move and the engine that moves it.

An orchestrator is asked `on(event, now)` and answers with actions. It is deterministic for a seed and knows no engine;
no engine knows what RL is. Times are modelled seconds, sizes are modelled bytes (those of the real system).

Who calls what: the engine calls `on(Start(), 0.0)` once, then `on` with each event in the order of modelled time, one
call at a time. A run ends when nothing is in flight, no timer is set and nothing more was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

TaskId = str
Connection = Literal["kept", "new"]
CollectiveKind = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "exchange", "broadcast", "permutation", "incast"
]
Algorithm = Literal["ring", "tree", "halving-doubling", "pairwise", "chain", "two-level", "direct"]


class Endpoint(NamedTuple):
    """A NIC of a host; `nic` None means the host with all its NICs (a transfer is then striped over them)."""

    host: str
    nic: int | None = None

    def __str__(self) -> str:
        return self.host if self.nic is None else f"{self.host}.{self.nic}"


@dataclass(frozen=True, slots=True)
class Computation:
    """`hosts` are busy for `duration` modelled seconds; nothing crosses the fabric."""

    id: TaskId
    duration: float
    hosts: tuple[str, ...] = ()
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Transfer:
    """`bytes` of payload from `src` to `dst`.

    channel: transfers of one (src, dst, channel) share a connection and go one after the other on it.
    connection: `kept` ones are open before time zero; a `new` one is opened for this transfer, its set-up counted.
    after: transfers of the same lowered collective that must have been received before this one may start.
    collective: the id of the collective that this transfer was lowered from, or "".
    A transfer whose ends are one host never touches the fabric and is over at once.
    """

    id: TaskId
    src: Endpoint
    dst: Endpoint
    bytes: int
    channel: str = ""
    connection: Connection = "kept"
    after: tuple[TaskId, ...] = ()
    phase: str = ""
    collective: TaskId = ""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of the ranks in `group`, in the order in which the algorithm links them.

    bytes: S of the formulas, the full tensor (nccl-tests' size): what all-reduce reduces, what all-gather ends with,
        what each rank of an all-to-all holds, what broadcast sends; of an exchange the total of its matrix.
    root: index into `group`, for broadcast and incast (there the receiver).
    chunks: into how many pieces a chain or tree is pipelined (1: store and forward).
    matrix: of an exchange, (sender, receiver, bytes) by index into `group`; every pair once at most.
    pods: of a two-level algorithm, how many ranks each pod has, in the group's order from the root on; all ranks of
        the first hold the tensor. None given: the root is one pod, the others are the second.
    merged: how many of the workload's own messages (layer buckets) this one stands for.
    """

    id: TaskId
    kind: CollectiveKind
    algorithm: Algorithm
    group: tuple[int, ...]
    bytes: int
    root: int = 0
    chunks: int = 1
    phase: str = ""
    label: str = ""
    merged: int = 1
    matrix: tuple[tuple[int, int, int], ...] = ()
    pods: tuple[int, ...] = ()


Task = Computation | Transfer | Collective


# -- events: what an orchestrator hears ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Time zero: every connection is open, every route verified."""


@dataclass(frozen=True, slots=True)
class Done:
    """A task ended; `started` is when its first byte was written (or its computation began)."""

    task: Task
    started: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A task cannot be finished (a host or its last path is gone)."""

    task: Task
    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The answer to Cancel: `progress` bytes (or seconds of a computation) were done before it stopped."""

    task: Task
    progress: float


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer set by SetTimer fired."""

    name: str


@dataclass(frozen=True, slots=True)
class EpochCommitted:
    """The circuits and routes of `epoch` carry traffic."""

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochKept:
    """The circuit policy was asked and left the circuits as they are."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class EpochAborted:
    """A change to `epoch` was given up; the old circuits stay."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class HostFailed:
    """A host is gone; its tasks fail."""

    host: str


@dataclass(frozen=True, slots=True)
class HostRepaired:
    """A failed host is back."""

    host: str


Event = (
    Start | Done | Failed | Cancelled | Timer | EpochCommitted | EpochKept | EpochAborted | HostFailed | HostRepaired
)


# -- actions: what an orchestrator asks for ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Start a task now. Ids are unique in a run."""

    task: Task


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a running task; Cancelled follows, or Done if it ended first."""

    id: TaskId


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire Timer(name) at the absolute modelled time `at` (at once if it has passed)."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell the circuit policy what comes.

    phase: the phase that begins now.
    demand: bytes by (source host, destination host).
    slack: seconds until the phase's first byte needs the fabric.
    """

    phase: str
    demand: Mapping[tuple[str, str], int] = field(default_factory=dict)
    slack: float = 0.0


Action = Run | Cancel | SetTimer | Announce


class Orchestrator(Protocol):
    """What decides which tasks run when."""

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """Answer one event at modelled time `now`."""
        ...
