"""Circuits over modelled time: carries out in the model what the keeper decides."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from controllers.epochs import Epoch
from controllers.keeper import Keeper
from controllers.loads import Load
from emu.model.conditions import Conditions
from emu.model.fluid import Fluid
from emu.model.network import Network


class Lighting:
    """The change under way and the keeper of those to come."""

    def __init__(
        self, conditions: Conditions, network: Network, fluid: Fluid, loads: Callable[[], Iterable[Load]]
    ) -> None:
        self.keeper = Keeper(
            network.fabric,
            conditions.deciding,
            conditions.initial,
            conditions.reconfiguration,
            seed=conditions.seed,
            lead=conditions.lead,
            loads=loads,
        )
        self._network, self._fluid = network, fluid
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
                self._steps.append((change.at, partial(self._darken, change.epoch)))
                self._steps.append((change.at + change.reconfiguration, partial(self._commit, change.epoch)))

    def _darken(self, coming: Epoch, _: float) -> None:
        self._network.darken(coming)
        self._fluid.darkness_changed()

    def _commit(self, coming: Epoch, now: float) -> None:
        self._network.commit(coming)
        self._fluid.reroute()
        self.keeper.committed(now)
