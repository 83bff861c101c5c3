"""An epoch change: two prepared bundles a switch, each fired by one COMMIT at its instant, and a third to go back.

One thread of the hub runs a change from its start to its end, and it alone touches the change's bundles. Whoever wants
the change stopped leaves a note that the thread finds at its next wait, so no lock is needed. The stages:

    fill -> (wait for the instant) -> DARK -> (one reconfiguration time) -> LIGHT -> committed
                  |                               |
                  discard                         restore

DARK moves packet switches first and circuits last, LIGHT lights circuits first and moves packet switches last, each set
after the barriers of the one before: no route ever points at a circuit that is known to be dark, unless it always did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
    emit: takes its events.
    applied: told of each RuleChange that a switch has acknowledged.
    """

    def __init__(
        self,
        request: Prepare,
        switches: Mapping[int, Switch],
        restore: Changes,
        emit: Callable[[Event], None],
        applied: Callable[[int, RuleChange], None],
    ) -> None:
        self.request = request
        self.dpids = frozenset(switches)
        self._emit = emit
        self._applied = applied
        self._plans: dict[Stage, Changes] = {"dark": request.dark, "light": request.light, "restore": restore}
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

    def run(self, reply: Reply) -> Outcome:
        """Fill, answer Prepared, and go through the stages; ends with Committed or Aborted, or with Refused."""
        prepared = False
        try:
            self._fill()
            at_ns = time.monotonic_ns() if self.request.at_ns is None else self.request.at_ns
            reply(Prepared(self.request.change, at_ns))
            prepared = True
            end: Event = self._fire(at_ns)
        except Exception as error:  # a change that dies of a bug must not leave the fabric dark either
            note = _note_of(error)
            end = self._give_up(note)
            if not prepared:
                reply(Refused(note.reason, note.dpid))
        outcome = self._close()
        if prepared:
            self._emit(end)
        return outcome

    # -- stages -------------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        fill(self._waiting("dark", "light", "restore"), deadline_in(REPLY_TIMEOUT))

    def _fire(self, at_ns: int) -> Committed:
        self._wait_until(at_ns, "dark", "light", "restore")
        dark = self._commit("dark", at_ns)
        began_ns = max((stamps.sent_ns for stamps in dark.switches.values() if stamps.optical), default=dark.sent_ns)
        # Counted from when the circuits did go dark: a DARK that was late must not shorten the dark time.
        light_ns = began_ns + self.request.reconfiguration_ns
        self._wait_until(light_ns, "light", "restore")
        light = self._commit("light", light_ns)
        return Committed(self.request.change, dark, light)

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
                self._applied(dpid, self._plans[stage][dpid])
        staged = Staged(self.request.change, stage, asked_ns, stamps)
        self._emit(staged)
        return staged

    def _waves(self, stage: Stage) -> Iterator[list[int]]:
        """The switches that are committed side by side: packet switches, then OCSs; in LIGHT the other way round."""
        plan = self._plans[stage]
        for optical in (True, False) if stage == "light" else (False, True):
            wave = [dpid for dpid, change in plan.items() if change.optical == optical]
            if wave:
                yield wave

    # -- giving up ----------------------------------------------------------------------------------------------------

    def _give_up(self, note: StopNote) -> Aborted:
        """Discard what waits; bring the old epoch back if a COMMIT has been sent. Never raises."""
        self._outcome, reason = self._undo()
        full_reason = f"{note.reason}; {reason}" if reason else note.reason
        if note.reply is not None:
            note.reply(AbortOutcome(self.request.change, self._outcome))
        return Aborted(self.request.change, self._outcome, full_reason, note.dpid)

    def _undo(self) -> tuple[Outcome, str]:
        for bundle in self._waiting("dark", "light"):
            bundle.discard()
        if not self._touched:
            for bundle in self._waiting("restore"):
                bundle.discard()
            return "discarded", ""
        failures = [failure for dpid in self._restore_order() if (failure := self._restore(dpid))]
        return ("failed", "; ".join(failures)) if failures else ("restored", "")

    def _restore_order(self) -> list[int]:
        """Circuits first: a route that is moved back must find its light."""
        plan = self._plans["restore"]
        return sorted(plan, key=lambda dpid: not plan[dpid].optical)

    def _restore(self, dpid: int) -> str:
        """Bring one switch back to the old epoch; says what failed. A lost switch does not keep the others dark."""
        bundle = self._bundles["restore"][dpid]
        try:
            bundle.begin_commit()
            bundle.end_commit(deadline_in(REPLY_TIMEOUT))
        except SwitchError as error:
            return f"could not restore the old epoch at {error}"
        self._applied(dpid, self._plans["restore"][dpid])
        return ""

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

    def _close(self) -> Outcome:
        if self._outcome is None:
            self._outcome = "committed"
        for bundle in self._waiting("restore"):
            bundle.discard()
        for bundle in self._waiting("dark", "light", "restore"):
            bundle.close()
        self._answer_notes(self._outcome)
        return self._outcome

    def _answer_notes(self, outcome: Outcome) -> None:
        while True:
            try:
                note: StopNote = self._notes.get(block=False)
            except hub.QueueEmpty:
                return
            if note.reply is not None:
                note.reply(AbortOutcome(self.request.change, outcome))
