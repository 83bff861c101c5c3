"""The policy that never changes anything: the circuits of epoch 0 hold for ever."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.epochs import Matchings
from controllers.policies.protocol import Keep, PolicyEvent, View


@dataclass(frozen=True, slots=True)
class Static:
    """See controllers.policies.protocol.CircuitPolicy."""

    name: str = "static"

    def on(self, event: PolicyEvent, view: View, now: float) -> Keep:
        """Keep, whatever happens."""
        return Keep("circuits are static")

    def known(self) -> tuple[Matchings, ...]:
        """Nothing beside the circuits of epoch 0."""
        return ()
