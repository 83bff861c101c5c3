"""The changes of circuits that a lab's controller is handed, as a policy decides them."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, Protocol

from controllers.channel import Aborted, Committed, Fault, Prepare, Prepared, Refused, Staged, SwitchLost
from controllers.circuits import with_dark
from controllers.client import Answered
from controllers.dark import DROP, Dark
from controllers.decisions import Decision
from controllers.epochs import Epoch, EpochChange
from controllers.gates import Gate
from controllers.keeper import Keeper
from controllers.loads import Load
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.scheduled import Scheduled
from controllers.tables import Tables
from controllers.transition import Transition, transition
from emu.lab.control import Control, as_lab_error
from emu.lab.errors import LabError
from emu.measurement import CircuitChange
from emu.packet.circuits import DECISION_LEAD
from emu.packet.clock import ModelClock
from emu.packet.loop import Loop
from workloads.protocol import Announce, Event

LEAD = 0.2
"""Wall seconds before its instant at which a change is handed over: filling its bundles takes a few milliseconds."""
SETTLE_NS = 10_000_000
"""After the barriers of new circuits: so long (ns) later what was held for them is let go."""
_PASSING = 1.0
"""Wall seconds that laying circuits while nothing is in flight may take, or it is not worth while."""


class Witness(Protocol):
    """Whoever measures changes of circuits while they happen."""

    def begin(self, old: Epoch, new: Epoch, tables: Tables, at_ns: int | None, dark_ns: int) -> None:
        """A change was handed over; see `Prepare`. tables: those of `old`."""
        ...

    def darkened(self, stage: Staged, dark_ns: int) -> None:
        """The circuits that change are dark, for so long."""
        ...

    def committed(self, done: Committed, change: CircuitChange, epoch: Epoch) -> None:
        """The circuits of `epoch` were acknowledged; `change` may still be filled in."""
        ...

    def given_up(self, holds: Epoch | None, now: float) -> None:
        """The change was aborted; `holds`: its epoch, if that holds all the same."""
        ...


class LabCircuits:
    """Has circuits changed as a policy decides: hands each change to the controller and hears how it went."""

    def __init__(
        self,
        control: Control,
        initial: Epoch,
        policy: CircuitPolicy,
        reconfiguration: float,
        loop: Loop,
        witness: Witness | None = None,
        *,
        dark: Dark = DROP,
        ahead: float = 0.0,
    ) -> None:
        """`initial` must be installed already; nothing is decided before `use`.

        witness: told of every change. dark: what becomes of traffic in the dark. ahead: wall seconds before circuits go
        dark at which a detour begins, or traffic is held.
        """
        self.changes: list[CircuitChange] = []
        self._control, self._loop = control, loop
        self._initial, self._policy, self._reconfiguration = initial, policy, reconfiguration
        self._installed = initial
        self._pending: EpochChange | None = None
        self._witness = witness
        self._dark, self._ahead = dark, ahead if dark.mode in ("detour", "hold") else 0.0
        self._clock = ModelClock(1.0)
        self._keeper = self._new_keeper(lambda: ())
        loop.watch(control.client.fileno(), select.EPOLLIN, lambda _: self.poll())

    def use(self, clock: ModelClock, loads: Callable[[], Iterable[Load]] = lambda: ()) -> None:
        """Time zero of a run: `clock` is what times are meant by, `loads` what still has to cross the fabric."""
        self._clock = clock
        self._keeper = self._new_keeper(loads)
        self._keeper.start()

    @property
    def decisions(self) -> list[Decision]:
        """What was decided so far, in order."""
        return self._keeper.decisions

    @property
    def holds(self) -> Epoch:
        """The epoch that the switches hold, by the controller's last word."""
        return self._installed

    @property
    def ended(self) -> int:
        """How many changes are over."""
        return len(self.changes)

    @property
    def patience(self) -> int:
        """So many changes show every set of circuits that the policy knows."""
        return len(self._policy.known()) + 2

    def announce(self, announced: Announce, now: float) -> None:
        """The workload announced a phase."""
        self._keeper.announce(announced.phase, announced.demand, announced.slack, now)

    def next_handover(self) -> float | None:
        """When a change must be handed over or looked at again, in modelled seconds."""
        return self._keeper.next_at

    def hand_over(self, clock: ModelClock) -> None:
        """Give the change that is due, if there is one, to the controller, with its absolute instant."""
        self._clock = clock
        change = self._keeper.due(clock.now())
        if change is not None:
            self._submit(change, round(clock.wall(change.at) * 1e9))

    def pass_over(self, until: float) -> bool:
        """Nothing will be in flight until `until`: lay the circuits of then at once if they would change repeatedly."""
        now = self._clock.now()
        change = self._keeper.pass_over(now, until - _PASSING / self._clock.tdf)
        if change is not None:
            self._submit(change, None)
        return change is not None

    def _new_keeper(self, loads: Callable[[], Iterable[Load]]) -> Keeper:
        return Keeper(
            self._control.fabric,
            self._policy,
            self._initial,
            self._reconfiguration,
            seed=self._control.seed,
            ahead=(LEAD + self._ahead) / self._clock.tdf,
            lead=(DECISION_LEAD + self._ahead) / self._clock.tdf,
            loads=loads,
            drain=self._dark.patience,
        )

    def _submit(self, change: EpochChange, at_ns: int | None) -> None:
        self._pending = change
        step, dark = self._transition(change), self._dark_ns(change)
        if self._witness is not None:
            tables = self._control.tables(self._installed)
            self._witness.begin(self._installed, change.epoch, tables, at_ns, dark)
        ahead = round(self._ahead * 1e9) if at_ns is not None else 0  # nothing moves: nothing has to move on
        shut, release = self._queues(change)
        prepare = Prepare(
            *(self._control.name_of(change), step.dark, step.light, at_ns, dark, step.detour, ahead),
            *(shut, release, SETTLE_NS),
        )
        with as_lab_error("circuits"):
            self._control.client.submit(prepare)

    def _queues(self, change: EpochChange) -> tuple[tuple[Gate, ...], tuple[Gate, ...]]:
        """Those that hold traffic in this change, and those that let it go afterwards."""
        control, old, new = self._control, self._installed, change.epoch
        if control.holding is None:
            return (), ()
        return control.holding.change(old, new, control.realised(old), control.realised(new))

    def _transition(self, change: EpochChange) -> Transition:
        control, old, new = self._control, self._installed, change.epoch
        optical = frozenset(node.name for node in control.fabric.ocses)
        between = control.tables(with_dark(old, new)) if self._dark.mode == "detour" else None
        return transition(control.realised(old), control.realised(new), optical, control.dpids, between)

    @property
    def busy(self) -> bool:
        """Whether a change was handed over and has not ended."""
        return self._pending is not None

    def take_events(self) -> list[tuple[Event, float]]:
        """What the orchestrator should hear since the last call."""
        return self._keeper.take_events()

    def poll(self) -> None:
        """Hear what the controller says. Raises LabError if a switch or the controller is gone."""
        with as_lab_error("circuits"):
            for heard in self._control.client.poll():
                match heard:
                    case Staged():
                        self._stage(heard)
                    case Committed():
                        self._commit(heard)
                    case Aborted():
                        self._abort(self._control.blame(heard.reason, heard.dpid), heard.outcome == "committed")
                    case Answered(answer=Refused() as refused):
                        self._abort(self._control.blame(refused.reason, refused.dpid), False)
                    case SwitchLost() | Fault():
                        self._give_up(self._control.blame(heard.reason, heard.dpid))
                    case Answered(answer=Prepared()):
                        pass
                    case _:
                        pass

    def stop(self) -> None:
        """Stop to listen."""
        self._loop.forget(self._control.client.fileno())

    def _stage(self, stage: Staged) -> None:
        if self._witness is not None and self._pending is not None and stage.stage == "dark":
            self._witness.darkened(stage, self._dark_ns(self._pending))

    def _dark_ns(self, change: EpochChange) -> int:
        return round(change.reconfiguration * self._clock.tdf * 1e9)

    def _commit(self, done: Committed) -> None:
        change = self._end()
        self.changes.append(
            CircuitChange(
                epoch=change.epoch.number,
                asked_at=change.at,
                asked_dark=change.reconfiguration,
                dark_at=self._modelled(done.dark.sent_ns),
                lit_at=self._modelled(done.light.replied_ns),
                late_wall=done.dark.lateness,
                mode=self._dark.mode,
            )
        )
        if self._witness is not None:
            self._witness.committed(done, self.changes[-1], change.epoch)
        self._installed = change.epoch
        self._keeper.committed(self._clock.now())

    def _abort(self, reason: str, committed: bool) -> None:
        change = self._end()
        now = self._clock.now()
        self.changes.append(
            CircuitChange(change.epoch.number, change.at, change.reconfiguration, now, now, 0.0, f"aborted: {reason}")
        )
        if self._witness is not None:
            self._witness.given_up(change.epoch if committed else None, now)
        if committed:
            self._installed = change.epoch
        self._keeper.aborted(reason, now, holds=committed)

    def _give_up(self, reason: str) -> NoReturn:
        """The switches can no longer be relied on: the run ends, and a change that was under way is over."""
        if self._pending is not None:
            self._abort(reason, False)
        raise LabError(f"circuits: {reason}")

    def _end(self) -> EpochChange:
        change, self._pending = self._pending, None
        if change is None:
            raise LabError("the controller ended a change that was not handed to it")
        return change

    def _modelled(self, instant_ns: int) -> float:
        return self._clock.now() - (time.monotonic() - instant_ns / 1e9) / self._clock.tdf


class ScheduledCircuits(LabCircuits):
    """Changes at instants that are known beforehand."""

    def __init__(self, control: Control, initial: Epoch, schedule: Sequence[EpochChange], loop: Loop) -> None:
        """`initial` must be installed already."""
        super().__init__(control, initial, Scheduled(tuple(schedule)), 0.0, loop)
