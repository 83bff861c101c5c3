"""What the engine and the controller process say to each other; `controllers.lines` has how it is written.

The engine sends requests; the controller answers each one once, and sends events whenever it has any. The first thing
that it says is Hello. Instants are CLOCK_MONOTONIC in nanoseconds, which is one clock for every process of a machine;
durations in seconds are floats.

Neither side of the channel needs the OpenFlow library to import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from controllers.gates import Gate
from controllers.tables import INNER_PORTS, Rule, Table


class ControllerError(RuntimeError):
    """The controller could not do what it was asked, or what it says cannot be understood.

    dpid: the switch that is to blame, if one is.
    """

    def __init__(self, reason: str, dpid: int | None = None) -> None:
        super().__init__(reason if dpid is None else f"switch {dpid}: {reason}")
        self.reason = reason
        self.dpid = dpid


class ControllerLost(ControllerError):
    """The controller process is gone, or does not answer in time: nothing can be said of the switches any more."""


# -- what is asked ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What changes at one switch: first the rules `delete` go, then those of `add` come, in one atomic bundle.

    A rule that is added replaces one of the same match and priority.
    """

    delete: Table = ()
    add: Table = ()

    @property
    def optical(self) -> bool:
        """True if these are cross-connects of an OCS: rules that match the port of entry, and no port of its own."""
        entries = (rule.in_port for rule in (*self.delete, *self.add))
        return any(entry is not None and entry < INNER_PORTS for entry in entries)


Changes = Mapping[int, RuleChange]
"""By datapath id."""


@dataclass(frozen=True, slots=True)
class Install:
    """Replace everything that each switch holds by its table, then read it back. Answered by Installed."""

    tables: dict[int, Table]
    timeout: float


@dataclass(frozen=True, slots=True)
class Prepare:
    """Get an epoch change ready and fire it. Answered by Prepared; Staged and then Committed or Aborted follow.

    change: a name, unique in a run.
    dark: what goes at `at_ns`: the circuits that change (and, before them, detours at packet switches).
    light: what comes `reconfiguration_ns` after the circuits went dark: new circuits, then the routes that use them.
    at_ns: the asked instant, or None for as soon as it is ready.
    detour: what packet switches change `ahead_ns` before that instant, so that the circuits' queues run empty.
    shut: queues that are closed then. release: those that are opened `settle_ns` after the light's last barrier: a
    datapath may follow its barriers a moment later, and until then drops what enters a circuit that was dark.
    """

    change: str
    dark: dict[int, RuleChange]
    light: dict[int, RuleChange]
    at_ns: int | None
    reconfiguration_ns: int
    detour: dict[int, RuleChange] = field(default_factory=dict)
    ahead_ns: int = 0
    shut: tuple[Gate, ...] = ()
    release: tuple[Gate, ...] = ()
    settle_ns: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    """Give an epoch change up, if it is not too late. Answered by AbortOutcome."""

    change: str


@dataclass(frozen=True, slots=True)
class Echo:
    """Nothing but an answer is asked for. Answered by EchoReply."""


@dataclass(frozen=True, slots=True)
class MeasureBarriers:
    """Send `count` barriers to a switch, one after the other. Answered by Barriers."""

    dpid: int
    count: int


@dataclass(frozen=True, slots=True)
class ReadFlows:
    """Read what a switch holds, with its counters. Answered by Flows."""

    dpid: int


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare what the switches hold with what was installed and committed. Answered by Installed."""

    dpids: tuple[int, ...]


Request = Install | Prepare | Abort | Echo | MeasureBarriers | ReadFlows | Verify


Outcome = Literal["discarded", "restored", "committed", "failed"]

# -- what is answered ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Installed:
    """Every switch holds exactly what it should: `rules` of them in all."""

    rules: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The bundles of a change are filled and closed; it is fired at `at_ns`."""

    change: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class AbortOutcome:
    """How an abort went.

    outcome: `discarded`: no switch had changed. `restored`: DARK had been committed, and the old epoch is back.
        `committed`: it was too late, the new epoch holds. `failed`: the old epoch could not be brought back.
    """

    change: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class EchoReply:
    """`at_ns`: when the controller answered."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Barriers:
    """Seconds from each barrier request to its reply."""

    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FlowCount:
    """A rule as the switch holds it, and what it has matched since it was added."""

    rule: Rule
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Flows:
    """What a switch holds. `foreign` describes the entries that are not of the shape of a Rule: not from here."""

    dpid: int
    flows: tuple[FlowCount, ...]
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A request was not done, or not in full; why, and which switch is to blame if one is."""

    reason: str
    dpid: int | None = None


Answer = Installed | Prepared | AbortOutcome | EchoReply | Barriers | Flows | Refused


# -- what happens by itself ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The controller is there. `library`: the name and version of the OpenFlow library it runs on."""

    library: str


@dataclass(frozen=True, slots=True)
class SwitchConnected:
    """A switch's OpenFlow connection is up."""

    dpid: int


@dataclass(frozen=True, slots=True)
class SwitchLost:
    """A switch's OpenFlow connection is gone."""

    dpid: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stamps:
    """When one switch's COMMIT was sent, and when the reply to the barrier behind it came."""

    sent_ns: int
    replied_ns: int
    optical: bool


Stage = Literal["detour", "dark", "light", "restore"]


@dataclass(frozen=True, slots=True)
class Staged:
    """One stage of a change is over at every switch. `asked_ns`: the instant at which it was due."""

    change: str
    stage: Stage
    asked_ns: int
    switches: dict[int, Stamps] = field(default_factory=dict)

    @property
    def sent_ns(self) -> int:
        """When the first COMMIT was sent (the asked instant if no switch changed)."""
        return min((stamps.sent_ns for stamps in self.switches.values()), default=self.asked_ns)

    @property
    def replied_ns(self) -> int:
        """When the last barrier reply came (the asked instant if no switch changed)."""
        return max((stamps.replied_ns for stamps in self.switches.values()), default=self.asked_ns)

    @property
    def lateness(self) -> float:
        """Seconds from the asked instant to the first COMMIT."""
        return (self.sent_ns - self.asked_ns) / 1e9

    @property
    def skew(self) -> float:
        """Seconds between the first and the last OCS to acknowledge (0 if fewer than two changed)."""
        replies = [stamps.replied_ns for stamps in self.switches.values() if stamps.optical]
        return (max(replies) - min(replies)) / 1e9 if replies else 0.0


@dataclass(frozen=True, slots=True)
class Committed:
    """A change is done: every switch acknowledged both stages."""

    change: str
    dark: Staged
    light: Staged

    @property
    def control_dark(self) -> float:
        """The control plane's dark time: seconds from the last OCS's DARK commit to the last OCS's reply to LIGHT."""
        gone = [stamps.sent_ns for stamps in self.dark.switches.values() if stamps.optical]
        back = [stamps.replied_ns for stamps in self.light.switches.values() if stamps.optical]
        return (max(back) - max(gone)) / 1e9 if gone and back else 0.0


@dataclass(frozen=True, slots=True)
class Aborted:
    """A change was given up; `outcome` as in AbortOutcome. `dpid`: the switch that is to blame, if one is."""

    change: str
    outcome: Outcome
    reason: str
    dpid: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something went wrong that no request is waiting for, such as an OpenFlow error message out of turn."""

    reason: str
    dpid: int | None = None


Event = Hello | SwitchConnected | SwitchLost | Staged | Committed | Aborted | Fault
Message = Request | Answer | Event
