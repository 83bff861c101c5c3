"""Circuits by the clock: at given instants, or in turn for ever as a rotor switch does.

Neither looks at the traffic. The second is the rotor of RotorNet (Mellette et al., SIGCOMM 2017) and Opera: a fixed
list of matchings, each for one slot; of a slot, the reconfiguration time at its beginning is dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from controllers.epochs import EpochChange, Matchings
from controllers.policies.protocol import EpochResult, Keep, Plan, PolicyEvent, Tick, View


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The changes of a list, in the order of their instants.

    An instant that could not be kept is made up for at once, so that a late change is seen to be late and none is left
    out; only what was given up is not tried again. The changes' epoch numbers are not used: the keeper counts.
    """

    changes: tuple[EpochChange, ...]
    name: str = "scheduled"

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The next change of the list, at time zero and when one has ended."""
        if not isinstance(event, Tick | EpochResult):
            return Keep("circuits follow their schedule")
        for place, change in enumerate(self.changes):
            if view.last_at is None or change.at > view.last_at:
                reason = f"change {place + 1} of {len(self.changes)} of the schedule"
                return Plan(change.epoch.matchings, change.at, reason, reconfiguration=change.reconfiguration)
        return Keep("the schedule is over" if self.changes else "there is no schedule")

    def known(self) -> tuple[Matchings, ...]:
        """The circuits of each change."""
        return tuple(change.epoch.matchings for change in self.changes)


@dataclass(frozen=True, slots=True)
class Rotation:
    """The matchings of a list in turn, one every `period` seconds from `start` on, for ever.

    Raises ValueError for an empty list, and for times that leave no turn.
    """

    period: float
    start: float
    matchings: Sequence[Matchings]
    name: str = "scheduled"

    def __post_init__(self) -> None:
        if not self.matchings:
            raise ValueError("a rotation needs matchings")
        if not (0 < self.period < math.inf and 0 <= self.start < math.inf):
            raise ValueError(f"a rotation every {self.period} s from {self.start} s on is none")

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The next turn, at time zero and when a change has ended. Turns that were missed whole are left out."""
        if not isinstance(event, Tick | EpochResult):
            return Keep("circuits rotate")
        following = 0 if view.last_at is None else round((view.last_at - self.start) / self.period) + 1
        turn = max(following, math.floor((now - self.start) / self.period))
        reason = f"turn {turn}: matching {turn % len(self.matchings) + 1} of {len(self.matchings)}"
        return Plan(self.matchings[turn % len(self.matchings)], self.start + turn * self.period, reason)

    def known(self) -> tuple[Matchings, ...]:
        """All matchings of the list."""
        return tuple(self.matchings)
