"""Circuits over modelled time: carries out in the model what the keeper decides."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from controllers.epochs import Epoch, EpochChange
from controllers.keeper import Keeper
from controllers.loads import Load
from emu.model.conditions import Conditions
from topologies.fabric import Fabric


class Lamps(Protocol):
    """What carries light in the model."""

    def detour(self, coming: Epoch, now: float) -> None:
        """Traffic takes other ways than circuits that `coming` does not keep."""
        ...

    def darken(self, coming: Epoch, now: float) -> None:
        """Circuits that `coming` does not keep go dark."""
        ...

    def commit(self, coming: Epoch, dark: float, now: float) -> None:
        """The circuits of `coming` shine, after `dark` seconds; its routes hold."""
        ...


class Lighting:
    """The change under way and the keeper of those to come."""

    def __init__(
        self, conditions: Conditions, fabric: Fabric, lamps: Lamps, loads: Callable[[], Iterable[Load]]
    ) -> None:
        self.keeper = Keeper(
            fabric,
            conditions.deciding,
            conditions.initial,
            conditions.reconfiguration,
            seed=conditions.seed,
            ahead=conditions.ahead,
            lead=conditions.lead,
            loads=loads,
            drain=conditions.dark.patience,
        )
        self._mode, self._ahead = conditions.dark.mode, conditions.ahead
        self._lamps = lamps
        self._steps: deque[tuple[float, Callable[[float], None]]] = deque()

    @property
    def next_at(self) -> float:
        """When something will happen, inf if nothing will."""
        if self._steps:
            return self._steps[0][0]
        planned = self.keeper.next_at
        return math.inf if planned is None else planned

    @property
    def patience(self) -> int:
        """So often something happens while circuits take every form that the policy knows once."""
        return 3 * (len(self.keeper.policy.known()) + 2)

    def advance(self, now: float, due: float) -> None:
        """Do everything that is to be done until `due`, which is `now` but for the noise of summing up."""
        while self.next_at <= due:
            if self._steps:
                _, step = self._steps.popleft()
                step(now)
            elif (change := self.keeper.due(max(now, self.next_at))) is not None:
                if self._mode == "detour":
                    self._steps.append((change.at - self._ahead, partial(self._lamps.detour, change.epoch)))
                self._steps.append((change.at, partial(self._lamps.darken, change.epoch)))
                self._steps.append((change.at + change.reconfiguration, partial(self._commit, change)))

    def _commit(self, change: EpochChange, now: float) -> None:
        # What was held, or went another way, does not wait for a retransmission.
        missed = 0.0 if self._mode in ("hold", "detour") else change.reconfiguration
        self._lamps.commit(change.epoch, missed, now)
        self.keeper.committed(now)
