"""What a whole run came to: one `FabricOutcome` for each fabric of the scenario, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from emu.counterfactual import Counterfactual
from emu.measurement import Measurement
from emu.model.ideal import Prediction
from emu.scale import Scale
from emu.scenario.build import BuiltFabric
from emu.scenario.schema import Scenario
from emu.verdict.levels import Level, Verdict, worst


@dataclass(frozen=True, slots=True)
class FabricOutcome:
    """One fabric: what was built, what should have come out, what did, and whether that can be trusted.

    counterfactuals: what the model says of the fabric as it is not, where that was asked for.
    """

    built: BuiltFabric
    prediction: Prediction
    measurement: Measurement
    verdict: Verdict
    counterfactuals: tuple[Counterfactual, ...] = ()

    @property
    def name(self) -> str:
        """How the scenario calls the fabric."""
        return self.built.fabric.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of a scenario.

    directory: the run directory. scale: the one that all fabrics shared.
    plan: what was decided before the labs were built (scale and why, merged messages), a line each, for people.
    interrupted: the user stopped it; what was measured until then is here.
    began: when the run started, seconds since the epoch. wall: wall seconds that all of it took.
    """

    directory: Path
    scenario: Scenario
    scale: Scale
    fabrics: list[FabricOutcome]
    plan: list[str] = field(default_factory=list)
    interrupted: bool = False
    began: float = 0.0
    wall: float = 0.0

    @property
    def verdict(self) -> Level:
        """The worst fabric's level; INVALID if none was run."""
        return worst(fabric.verdict.level for fabric in self.fabrics) if self.fabrics else "INVALID"
