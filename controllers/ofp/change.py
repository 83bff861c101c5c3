"""An epoch change: two prepared bundles a switch, each fired by one COMMIT at its instant, and a third to go back.

One thread of the hub runs a change from its start to its end, and it alone touches the change's bundles. Whoever wants
the change stopped leaves a note that the thread finds at its next wait, so no lock is needed. The stages:

    fill -> (wait for the instant) -> DARK -> (one reconfiguration time) -> LIGHT -> committed
                  |                               |
                  discard                         restore

A change with a detour has one stage more, some time before DARK, in which packet switches turn to other ways.

DARK moves packet switches first and circuits last, LIGHT lights circuits first and moves packet switches last, each set
after the barriers of the one before: no route ever points at a circuit that is known to be dark, unless it always did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from controllers.channel import (
    Aborted,
    AbortOutcome,
    Answer,
    Changes,
    Committed,
    Event,
    Outcome,
    Prepare,
    Prepared,
    Refused,
    RuleChange,
    Stage,
    Staged,
    Stamps,
)
from controllers.gates import Gate, Gates
from controllers.ofp.bundles import Bundle, changing, fill, refresh
from controllers.ofp.switch import Switch, SwitchError, deadline_in
from controllers.ryu_api import SLEEP_GRAIN_NS, hub

REPLY_TIMEOUT = 2.0
"""Seconds that a switch has to answer each step of a change."""
QUIET_NS = 200_000_000
"""No bundle is filled anew within this time before an instant (ns)."""

_LOG = logging.getLogger(__name__)

Reply = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class StopNote:
    """Why a change should stop, the switch to blame if one is, and who wants to know how that went."""

    reason: str
    dpid: int | None = None
    reply: Reply | None = None


class Owner(Protocol):
    """Who runs a change and hears of it, from the change's thread."""

    def emit(self, event: Event) -> None:
        """Take an event for the engine."""
        ...

    def apply(self, dpid: int, change: RuleChange) -> None:
        """A switch has acknowledged this."""
        ...

    def over(self, change: Change, outcome: Outcome) -> None:
        """The change holds no switch any more. Called before anyone is told, so that the next one can be prepared."""
        ...


class _Stopped(Exception):
    """A note was found."""

    def __init__(self, note: StopNote) -> None:
        super().__init__(note.reason)
        self.note = note


def _note_of(error: Exception) -> StopNote:
    if isinstance(error, _Stopped):
        return error.note
    if isinstance(error, SwitchError):
        return StopNote(error.reason, error.dpid)
    _LOG.exception("an epoch change failed")
    return StopNote(f"internal error: {error!r}")


class Change:
    """A prepared epoch change.

    switches: those it touches, connected.
    restore: what brings each of them back to the old epoch, from wherever the change is stopped.
    gates: what closes and opens queues.
    """

    def __init__(
        self, request: Prepare, switches: Mapping[int, Switch], restore: Changes, owner: Owner, gates: Gates
    ) -> None:
        self.request = request
        self._gates = gates
        self._shut: tuple[Gate, ...] = ()
        self.dpids = frozenset(switches)
        self._owner = owner
        self._plans: dict[Stage, Changes] = {
            **{"detour": request.detour, "dark": request.dark},
            **{"light": request.light, "restore": restore},
        }
        self._bundles: dict[Stage, dict[int, Bundle]] = {
            stage: {dpid: Bundle(switches[dpid], changing(change)) for dpid, change in plan.items()}
            for stage, plan in self._plans.items()
        }
        self._notes = hub.Queue()
        self._touched = False
        self._outcome: Outcome | None = None

    # -- called by others ---------------------------------------------------------------------------------------------

    def stop(self, note: StopNote) -> None:
        """Ask for the change to be given up. The note is answered with how it ended, at once if it has."""
        self._notes.put(note)
        if self._outcome is not None:
            self._answer_notes(self._outcome)

    def run(self, reply: Reply) -> None:
        """Fill, answer Prepared, and go through the stages; ends with Committed or Aborted, or with Refused."""
        name, note, prepared = self.request.change, None, False
        try:
            fill(self._waiting("detour", "dark", "light", "restore"), deadline_in(REPLY_TIMEOUT))
            at_ns = self.request.at_ns
            if at_ns is None:
                at_ns = time.monotonic_ns() + self.request.ahead_ns
            reply(Prepared(name, at_ns))
            prepared = True
            end: Event = self._fire(at_ns)
            outcome: Outcome = "committed"
        except Exception as error:  # a change that dies of a bug must not leave the fabric dark either
            note = _note_of(error)
            outcome, failures = self._undo()
            end = Aborted(name, outcome, "; ".join([note.reason, *failures]), note.dpid)
        self._close(outcome, note)
        if prepared:
            self._owner.emit(end)
        elif note is not None:
            reply(Refused(note.reason, note.dpid))

    # -- stages -------------------------------------------------------------------------------------------------------

    def _fire(self, at_ns: int) -> Committed:
        self._move_away(at_ns - self.request.ahead_ns)
        self._wait_until(at_ns, "dark", "light", "restore")
        dark = self._commit("dark", at_ns)
        began_ns = max((stamps.sent_ns for stamps in dark.switches.values() if stamps.optical), default=dark.sent_ns)
        # Counted from when the circuits did go dark: a DARK that was late must not shorten the dark time.
        light_ns = began_ns + self.request.reconfiguration_ns
        self._wait_until(light_ns, "light", "restore")
        light = self._commit("light", light_ns)
        if self.request.release:
            self._wait_until(light.replied_ns + self.request.settle_ns, "restore")
            self._gates.release(self.request.release)
        return Committed(self.request.change, dark, light)

    def _move_away(self, at_ns: int) -> None:
        """Before it gets dark: traffic takes its detour, or is held."""
        if not (self.request.detour or self.request.shut):
            return
        self._wait_until(at_ns, "detour", "dark", "light", "restore")
        self._shut = self.request.shut
        self._gates.shut(self._shut)
        if self.request.detour:
            self._commit("detour", at_ns)

    def _commit(self, stage: Stage, asked_ns: int) -> Staged:
        """Commit a stage's bundles, set after set. Raises SwitchError for the first switch that fails."""
        stamps: dict[int, Stamps] = {}
        for wave in self._waves(stage):
            sent: dict[int, int] = {}
            for dpid in wave:
                self._touched = True
                sent[dpid] = self._bundles[stage][dpid].begin_commit()
            for dpid in wave:
                replied = self._bundles[stage][dpid].end_commit(deadline_in(REPLY_TIMEOUT))
                stamps[dpid] = Stamps(sent[dpid], replied, self._plans[stage][dpid].optical)
                self._owner.apply(dpid, self._plans[stage][dpid])
        staged = Staged(self.request.change, stage, asked_ns, stamps)
        self._owner.emit(staged)
        return staged

    def _waves(self, stage: Stage) -> Iterator[list[int]]:
        """The switches that are committed side by side: packet switches, then OCSs; in LIGHT the other way round."""
        plan = self._plans[stage]
        for optical in (True, False) if stage == "light" else (False, True):
            wave = [dpid for dpid, change in plan.items() if change.optical == optical]
            if wave:
                yield wave

    # -- giving up ----------------------------------------------------------------------------------------------------

    def _undo(self) -> tuple[Outcome, list[str]]:
        """Bring the old epoch back if a COMMIT has been sent; says what failed. Never raises."""
        for bundle in self._waiting("detour", "dark", "light"):
            bundle.discard()
        if not self._touched:
            return "discarded", self._reopen()
        failures = [failure for dpid in self._restore_order() if (failure := self._restore(dpid))]
        failures += self._reopen()
        return ("failed" if failures else "restored"), failures

    def _reopen(self) -> list[str]:
        """Let go what was held for the change; says what failed."""
        try:
            self._gates.release(self._shut)
        except OSError as error:
            return [str(error)]
        return []

    def _restore_order(self) -> list[int]:
        """Circuits first: a route that is moved back must find its light."""
        plan = self._plans["restore"]
        return sorted(plan, key=lambda dpid: not plan[dpid].optical)

    def _restore(self, dpid: int) -> str:
        """Bring one switch back to the old epoch; says what failed. A lost switch does not keep the others dark."""
        bundle = self._bundles["restore"][dpid]
        try:
            self._commit_at_once(bundle)
        except SwitchError:
            try:  # it may be the bundle that failed, not the switch
                bundle.discard()
                fill([bundle], deadline_in(REPLY_TIMEOUT))
                self._commit_at_once(bundle)
            except SwitchError as error:
                return f"could not restore the old epoch at {error}"
        self._owner.apply(dpid, self._plans["restore"][dpid])
        return ""

    @staticmethod
    def _commit_at_once(bundle: Bundle) -> None:
        bundle.begin_commit()
        bundle.end_commit(deadline_in(REPLY_TIMEOUT))

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait_until(self, instant_ns: int, *stages: Stage) -> None:
        """Sleep until an instant, keeping the bundles of `stages` alive. Raises _Stopped as soon as a note is found."""
        while True:
            left_ns = instant_ns - time.monotonic_ns()
            self._check_notes(max(0, min(left_ns - SLEEP_GRAIN_NS, QUIET_NS)))
            if left_ns <= SLEEP_GRAIN_NS:
                break
            if left_ns > 2 * QUIET_NS:
                refresh(self._waiting(*stages), deadline_in(REPLY_TIMEOUT))
        while time.monotonic_ns() < instant_ns:
            hub.sleep(0)

    def _check_notes(self, wait_ns: int) -> None:
        """Wait for a note for so long; 0 only looks. Raises _Stopped if there is one."""
        try:
            note = self._notes.get(timeout=wait_ns / 1e9) if wait_ns else self._notes.get(block=False)
        except hub.QueueEmpty:
            return
        raise _Stopped(note)

    def _waiting(self, *stages: Stage) -> list[Bundle]:
        return [bundle for stage in stages for bundle in self._bundles[stage].values()]

    # -- ending -------------------------------------------------------------------------------------------------------

    def _close(self, outcome: Outcome, note: StopNote | None) -> None:
        """Let go of the switches, then tell everyone who asked for a stop how it ended."""
        for bundle in self._waiting("detour", "dark", "light", "restore"):
            bundle.discard()
        self._owner.over(self, outcome)
        self._outcome = outcome
        if note is not None and note.reply is not None:
            note.reply(AbortOutcome(self.request.change, outcome))
        self._answer_notes(outcome)

    def _answer_notes(self, outcome: Outcome) -> None:
        while True:
            try:
                note: StopNote = self._notes.get(block=False)
            except hub.QueueEmpty:
                return
            if note.reply is not None:
                note.reply(AbortOutcome(self.request.change, outcome))
