"""What the packet engine asks of whoever changes circuits while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from controllers.loads import Load
from emu.packet.clock import ModelClock
from workloads.protocol import Announce, Event

DECISION_LEAD = 0.05
"""Wall seconds from a decision to the dark time for it: short, for traffic may wait for it. The
controller must be ready by then, or the change is late and found to be."""


class Circuits(Protocol):
    """Whoever has circuits changed. Instants are modelled seconds."""

    def use(self, clock: ModelClock, loads: Callable[[], Iterable[Load]]) -> None:
        """Time zero is now on this clock; `loads` says what still has to cross the fabric."""
        ...

    def announce(self, announced: Announce, now: float) -> None:
        """Hear what the workload says of a phase that comes."""
        ...

    def next_handover(self) -> float | None:
        """When `hand_over` must be called next, None if nothing is planned or a change is under way."""
        ...

    def hand_over(self, clock: ModelClock) -> None:
        """Hand the change that is due to the controller; there may be none after all."""
        ...

    def pass_over(self, until: float) -> bool:
        """Nothing will be in flight until then: lay only the last circuits of several. False if time may jump on."""
        ...

    @property
    def busy(self) -> bool:
        """A change was handed over and is not committed yet: modelled time must not jump."""
        ...

    @property
    def ended(self) -> int:
        """How many changes are over."""
        ...

    @property
    def patience(self) -> int:
        """After so many changes without a byte moved, further ones will not help either."""
        ...

    def take_events(self) -> list[tuple[Event, float]]:
        """What happened since the last call, with the modelled time of each."""
        ...
