"""Circuits by phase, behind the slack gate: RFabric's templates.

At each announcement of the workload the phase's template is fitted to the usable ports with as few changes as possible
(`shapes`, `placement`); if that differs from what is lit, the change must pass the gate (`gate`). Nothing else makes
circuits change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.epochs import Matchings, lit_by
from controllers.policies.gate import gate
from controllers.policies.placement import Placement
from controllers.policies.protocol import Keep, Phase, Plan, PolicyEvent, View
from controllers.policies.shapes import Shape, lay
from topologies.fabric import Fabric


@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """See controllers.policies.protocol.CircuitPolicy.

    phases: by phase, a shape, or the circuits themselves. A phase that is not named takes the template of its name
        without what stands behind the last dot, so `generation` also serves `generation.tp4`, and `generation.tp4` a
        parallelism of its own; without any, circuits are kept.
    margin: seconds that must be left over when a change is over and the phase needs the fabric.
    """

    fabric: Fabric
    phases: Mapping[str, Shape | Matchings] = field(default_factory=dict)
    margin: float = 0.0
    name: str = "templates"

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """Lay a phase's template if there is time for it."""
        if not isinstance(event, Phase):
            return Keep("circuits change when a phase is announced")
        template = self._template(event.name)
        if template is None:
            return Keep(f"no template for phase {event.name}")
        what = template if isinstance(template, str) else "the phase's circuits"
        wanted = self._placed(template, view) if isinstance(template, str) else template
        if lit_by(wanted) == view.epoch.lit:
            return Keep(f"{what}: lit already")
        slack, margin = event.slack, self.margin
        return gate(self.fabric, view, wanted, slack=slack, margin=margin, now=now, what=what)

    def known(self) -> tuple[Matchings, ...]:
        """The circuits that are given by phase; how shapes are fitted depends on what is lit."""
        return tuple(template for template in self.phases.values() if not isinstance(template, str))

    def _template(self, phase: str) -> Shape | Matchings | None:
        while phase not in self.phases and "." in phase:
            phase = phase.rpartition(".")[0]
        return self.phases.get(phase)

    def _placed(self, shape: Shape, view: View) -> Matchings:
        placement = Placement(self.fabric, view.epoch, view.free_ports)
        lay(shape, placement, view.site_demand)
        return placement.matchings()
