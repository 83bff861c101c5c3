"""The keeper of a run's circuits: asks the policy, numbers epochs, holds the change to come, remembers every decision.

It moves no light and has no clock. An engine tells it what happens (`start`, `announce`, `committed`, …), calls `due`
when the instant `next_at` has come, carries out the change that this returns, and passes the events of `take_events`
on to the orchestrator. The model and the lab use one and the same keeper.

A change that waits for its circuits to be drained is looked at again when they could be empty at line rate, at the
latest at its deadline. A plan with a deadline of its own is then given up, and the old circuits stay. Where draining is
the fabric's way through the dark, every other plan waits, too, and its circuits then go dark all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controllers.decisions import Decision, Verdict, describe
from controllers.epochs import CircuitError, Epoch, EpochChange
from controllers.loads import Load
from controllers.observer import Observer
from controllers.policies.protocol import (
    CircuitPolicy,
    Demand,
    DemandSample,
    EpochResult,
    Phase,
    Plan,
    PolicyEvent,
    PortFailed,
    Tick,
)
from topologies.fabric import Fabric
from workloads.protocol import EpochAborted, EpochCommitted, EpochKept, Event

_SAME_INSTANT = 1e-12
"""Instants that differ by less, relative to the time since zero, are one."""
_RECHECK = 0.1
"""Of the reconfiguration time: circuits that should be empty by now are not looked at more often."""
_CLOSEST = 1e-6
"""Seconds between two looks at circuits that change in no time."""


class PolicyError(CircuitError):
    """A policy planned circuits that the fabric cannot hold; the message names the policy and the port."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A plan that is not begun.

    look: when it is due, or looked at again. deadline: until when it waits for its circuits to be drained, None: not.
    since: when it began to wait for that.
    """

    epoch: Epoch
    plan: Plan
    look: float
    deadline: float | None = None
    since: float | None = None


class Keeper:
    """The circuits of one run.

    ahead: seconds before its instant at which an engine must be handed a change.
    lead: seconds from a decision to the earliest instant that can still be met.
    loads: what still has to cross the fabric, asked when a policy wants to know what is in flight.
    seed: the one that routes are drawn with.
    drain: seconds for which every change waits at most for its circuits to be drained; None: only plans that ask wait.
    """

    def __init__(
        self,
        fabric: Fabric,
        policy: CircuitPolicy,
        initial: Epoch,
        reconfiguration: float,
        *,
        seed: int = 0,
        ahead: float = 0.0,
        lead: float = 0.0,
        loads: Callable[[], Iterable[Load]] = lambda: (),
        drain: float | None = None,
    ) -> None:
        self.policy = policy
        self.decisions: list[Decision] = []
        self.changes: list[EpochChange] = []
        """Those that were begun, in order."""
        self._reconfiguration, self._ahead, self._lead, self._drain = reconfiguration, ahead, lead, drain
        self._observer = Observer(fabric, initial, seed, loads)
        self._number = initial.number
        self._pending: _Pending | None = None
        self._under_way: EpochChange | None = None
        self._tick: float | None = None
        self._deferred: deque[tuple[PolicyEvent, float]] = deque()
        self._events: list[tuple[Event, float]] = []

    # -- what an engine says ------------------------------------------------------------------------------------------

    def start(self, now: float = 0.0) -> None:
        """Time begins."""
        self._ask(Tick(), now)

    def announce(self, phase: str, demand: Demand, slack: float, now: float) -> None:
        """The workload announced a phase."""
        self._ask(Phase(phase, demand, slack), now)

    def sample(self, demand: Demand, now: float) -> None:
        """What waits to be sent was looked at."""
        self._ask(DemandSample(demand), now)

    def port_failed(self, ocs: str, port: int, now: float) -> None:
        """A port of an OCS is dead: no plan may use it from now on."""
        self._observer.lose(ocs, port)
        self._ask(PortFailed(ocs, port), now)

    def committed(self, now: float) -> None:
        """The change under way is over: its epoch holds."""
        epoch = self._ended().epoch
        self._observer.enter(epoch)
        self._note(now, f"epoch {epoch.number}", "commit", epoch.number, "")
        self._events.append((EpochCommitted(epoch.number), now))
        self._ask_again(EpochResult("committed", epoch.number), now)

    def aborted(self, reason: str, now: float, *, holds: bool = False) -> None:
        """The change under way was given up. `holds`: it was too late for that, its epoch holds all the same."""
        epoch = self._ended().epoch
        if holds:
            self._observer.enter(epoch)
        self._abort(epoch.number, reason, now)
        self._ask_again(EpochResult("aborted", epoch.number, reason), now)

    # -- what an engine does ------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> Epoch:
        """The one that holds."""
        return self._observer.epoch

    @property
    def busy(self) -> bool:
        """Whether a change was handed out that has not ended."""
        return self._under_way is not None

    @property
    def next_at(self) -> float | None:
        """When `due` has to be asked next; None while a change is under way and if nothing is planned."""
        if self.busy:
            return None
        planned = None if self._pending is None else self._pending.look
        return min((at for at in (self._tick, planned) if at is not None), default=None)

    def due(self, now: float) -> EpochChange | None:
        """The change to carry out, if one is due; its `at` may lie ahead. Then it is under way until it has ended."""
        latest = now * (1 + _SAME_INSTANT)
        if not self.busy and self._tick is not None and self._tick <= latest:
            self._tick = None
            self._ask(Tick(), now)
        pending = self._pending
        if self.busy or pending is None or pending.look > latest or not self._can_begin(pending, now):
            return None
        self._pending = None
        plan = pending.plan
        at = now + self._lead if plan.at is None or pending.deadline is not None else plan.at
        self._observer.last_at = at
        return self._begin(EpochChange(at, pending.epoch, self._dark(plan)))

    def take_events(self) -> list[tuple[Event, float]]:
        """What the orchestrator has to hear since the last call, with the time of each."""
        out, self._events = self._events, []
        return out

    def pass_over(self, now: float, until: float) -> EpochChange | None:
        """Nothing will be in flight until `until`: the one change that stands for all that would be over by then.

        None if fewer than two would be. It is under way from now on, and to be carried out without dark time; the
        changes that it stands for are skipped, their numbers with them.
        """
        skipped = 0
        while (following := self._also_over(until)) is not None:
            self._observer.last_at = None if self._pending is None else self._pending.plan.at
            self._pending = self._pend(following, now)
            skipped += 1
        pending = self._pending
        if not skipped or pending is None:
            return None
        self._pending, self._observer.last_at = None, pending.plan.at
        number = pending.epoch.number
        reason = f"nothing is in flight until {until:.6g} s: of {skipped + 1} changes only the last is carried out"
        self._note(now, f"epoch {number - skipped} to {number - 1}", "skip", number, reason)
        return self._begin(EpochChange(now, pending.epoch, 0.0))

    # -- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, event: PolicyEvent, now: float) -> None:
        if isinstance(event, Phase | DemandSample):
            self._observer.demand = event.demand
        if self.busy:
            self._deferred.append((event, now))
            return
        answer = self.policy.on(event, self._observer.view(self._reconfiguration, self._lead), now)
        if isinstance(answer, Plan):
            self._plan(answer, event, now)
            return
        if answer.again is not None:
            self._tick = max(answer.again, now)
        if not isinstance(event, Tick | EpochResult):
            self._note(now, describe(event), "keep", self.epoch.number, answer.reason, _slack(event))
        if isinstance(event, Phase):
            self._events.append((EpochKept(self.epoch.number, answer.reason), now))

    def _ask_again(self, result: EpochResult, now: float) -> None:
        """A change has ended: ask on, first on that, then what had to wait, with the slack that is left."""
        self._ask(result, now)
        deferred, self._deferred = self._deferred, deque()
        for event, asked in deferred:
            late = isinstance(event, Phase) and replace(event, slack=max(0.0, event.slack - (now - asked)))
            self._ask(late or event, now)

    def _plan(self, plan: Plan, event: PolicyEvent, now: float) -> None:
        superseded, self._pending = self._pending, self._pend(plan, now)
        if superseded is not None:
            self._abort(superseded.epoch.number, f"epoch {self._number} was planned instead", now)
        if isinstance(event, EpochResult) and event.outcome == "kept":  # a policy that insists must not stop time
            self._pending = replace(self._pending, look=max(self._pending.look, now + self._patience))
        self._note(now, describe(event), "plan", self._number, plan.reason, _slack(event))

    def _pend(self, plan: Plan, now: float) -> _Pending:
        epoch = Epoch(self._number + 1, plan.matchings)
        try:
            self._observer.check(epoch)
        except CircuitError as error:
            raise PolicyError(f"policy {self.policy.name}: {error}") from error
        self._number += 1
        begin = now if plan.at is None else plan.at
        if plan.deadline is None and self._drain is None:
            return _Pending(epoch, plan, max(now, begin - self._ahead))
        look = max(now, begin)
        return _Pending(epoch, plan, look, look + (self._drain or 0.0) if plan.deadline is None else plan.deadline)

    # -- changing -----------------------------------------------------------------------------------------------------

    def _can_begin(self, pending: _Pending, now: float) -> bool:
        """Whether nothing stands against it; if circuits must be drained first, it waits on or is given up."""
        deadline, since = pending.deadline, now if pending.since is None else pending.since
        left = 0.0 if deadline is None else self._observer.drain_time(pending.epoch)
        if deadline is None or left == 0:
            self._note_drained(pending, f"drained after {now - since:.3g} s", now)
            return True
        if now * (1 + _SAME_INSTANT) < deadline:
            look = min(deadline, now + max(left, self._patience))
            self._pending = replace(pending, look=look, since=since)
            return False
        reason = f"at its deadline, circuits that it takes away were still needed for {left:.3g} s at line rate"
        if pending.plan.deadline is None:
            self._note_drained(replace(pending, since=since), f"{reason}: they go dark all the same", now)
            return True
        self._pending = None
        self._abort(pending.epoch.number, reason, now)
        self._ask(EpochResult("kept", pending.epoch.number, reason), now)
        return False

    @property
    def _patience(self) -> float:
        return max(_RECHECK * self._reconfiguration, _CLOSEST)

    def _begin(self, change: EpochChange) -> EpochChange:
        self._under_way = change
        self.changes.append(change)
        return change

    def _ended(self) -> EpochChange:
        change, self._under_way = self._under_way, None
        if change is None:
            raise RuntimeError("a change of circuits ended that was not begun")
        return change

    def _dark(self, plan: Plan) -> float:
        return self._reconfiguration if plan.reconfiguration is None else plan.reconfiguration

    def _also_over(self, until: float) -> Plan | None:
        """What the policy would plan after the pending change, if both would be over by `until`."""
        pending = self._pending
        if self.busy or pending is None or not self._over_by(pending.plan, until) or pending.plan.at is None:
            return None
        seen = replace(
            self._observer.view(self._reconfiguration, self._lead), epoch=pending.epoch, last_at=pending.plan.at
        )
        result = EpochResult("committed", pending.epoch.number)
        answer = self.policy.on(result, seen, pending.plan.at + self._dark(pending.plan))
        return answer if isinstance(answer, Plan) and self._over_by(answer, until) else None

    def _over_by(self, plan: Plan, until: float) -> bool:
        """Whether it is a plan for an instant, and over in time."""
        return plan.at is not None and plan.deadline is None and plan.at + self._dark(plan) <= until

    # -- remembering --------------------------------------------------------------------------------------------------

    def _note_drained(self, pending: _Pending, reason: str, now: float) -> None:
        """How waiting ended, for a change that had to wait because draining is the fabric's way."""
        if pending.since is not None and pending.plan.deadline is None:
            self._note(now, f"epoch {pending.epoch.number}", "drain", pending.epoch.number, reason)

    def _abort(self, number: int, reason: str, now: float) -> None:
        self._note(now, f"epoch {number}", "abort", number, reason)
        self._events.append((EpochAborted(number, reason), now))

    def _note(
        self, now: float, event: str, outcome: Verdict, epoch: int, reason: str, slack: float | None = None
    ) -> None:
        self.decisions.append(Decision(now, event, slack, outcome, epoch, reason))


def _slack(event: PolicyEvent) -> float | None:
    return event.slack if isinstance(event, Phase) else None
