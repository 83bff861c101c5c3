"""What the model says of a fabric if its circuits could be changed in no time, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from controllers.epochs import Matchings
from controllers.policies.protocol import CircuitPolicy, Keep, Plan, PolicyEvent, View
from controllers.policies.static import Static
from emu.model.ideal import Prediction
from emu.scenario.build import BuiltFabric

Kind = Literal["no dark time", "no reconfiguration"]
MEANINGS: Final[dict[Kind, str]] = {
    "no dark time": "the same policy or schedule, but a change takes no time",
    "no reconfiguration": "the circuits of epoch 0 hold for ever",
}


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A fabric as it is not, run through the model. Nothing of it is measured."""

    kind: Kind
    prediction: Prediction

    def problem(self, phase: str, whole: Prediction) -> str:
        """Why a phase has no time here although it has one in `whole`, the prediction of the fabric as it is; or ""."""
        there, here = whole.trace.phases[phase], self.prediction.trace.phases.get(phase)
        if here is not None and here.packet_bytes >= there.packet_bytes:
            return ""
        failures = self.prediction.trace.failures
        return failures[0].reason if failures else "it was not reached"


def counterfactuals(built: BuiltFabric, predict: Callable[[BuiltFabric], Prediction]) -> tuple[Counterfactual, ...]:
    """Both, for a fabric with an OCS; none for another. predict: runs the workload through the model."""
    if not built.fabric.ocses:
        return ()
    others: dict[Kind, BuiltFabric] = {
        "no dark time": replace(built, reconfiguration=0.0, policy=Instant(built.policy)),
        "no reconfiguration": replace(built, schedule=(), policy=Static()),
    }
    return tuple(Counterfactual(kind, predict(other)) for kind, other in others.items())


@dataclass(frozen=True, slots=True)
class Instant:
    """Decides as another policy does, but its changes take no time."""

    policy: CircuitPolicy

    @property
    def name(self) -> str:
        """The other's."""
        return self.policy.name

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The other's answer, without dark time."""
        answer = self.policy.on(event, view, now)
        return replace(answer, reconfiguration=0.0) if isinstance(answer, Plan) else answer

    def known(self) -> tuple[Matchings, ...]:
        """What the other knows."""
        return self.policy.known()
