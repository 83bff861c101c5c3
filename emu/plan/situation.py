"""Everything that a scale is chosen from: the workload on each fabric, and what each fabric's lab can carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.measurement import Capacity
from emu.plan.limits import Limit, Terms, limits, merging_limits, message_wishes, step_wishes
from emu.plan.outline import Estimate
from emu.plan.rates import SMALLEST_RATE
from emu.plan.work import Work
from emu.scale import Scale
from emu.scenario.schema import Scenario
from emu.units import format_rate

LAB_START = 4.0
"""Wall seconds until one lab stands, on two processors."""
CALIBRATION = 8.0
"""Wall seconds to find a fabric's capacity and to calibrate its links."""
EPOCH_CALIBRATION = 4.0
"""Wall seconds to calibrate the links that a change of circuits lights."""
TRAFFIC_MARGIN = 1.1
"""Wall time of traffic by its ideal: the largest ratio that a valid run has."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A scenario's fabrics with their work and capacity, in the same order.

    floor: layer gradients are merged into no fewer collectives.
    nominal: not every capacity was measured.
    """

    scenario: Scenario
    works: tuple[Work, ...]
    capacities: tuple[Capacity, ...]
    floor: int
    nominal: bool

    @property
    def smallest_sent(self) -> int:
        """Bytes in the lab below which messages are charged instead of sent."""
        emulation = self.scenario.emulation
        return emulation.mtu if emulation.small_messages == "charge" else 0

    # -- limits -------------------------------------------------------------------------------------------------------

    def terms(self, beta: float, buckets: int | None) -> Iterator[tuple[Work, Terms]]:
        """Each fabric's work with the terms on which it would be done."""
        emulation = self.scenario.emulation
        for work, capacity in zip(self.works, self.capacities, strict=True):
            yield work, Terms(capacity, beta, buckets, emulation.mtu, emulation.small_messages == "charge")

    def limits(self, beta: float, buckets: int | None) -> list[Limit]:
        """What any of the fabrics cannot do without, the strictest first."""
        found = [limit for work, terms in self.terms(beta, buckets) for limit in limits(work, terms)]
        return sorted(found, key=lambda limit: -limit.tdf)

    def step_wishes(self, beta: float) -> list[Limit]:
        """What it takes to measure each collective of any of the fabrics well."""
        return [wish for work, terms in self.terms(beta, self.floor) for wish in step_wishes(work, terms)]

    def wishes(self, beta: float) -> list[Limit]:
        """What would make measurements better, the strictest first; what no scale can fulfil is left out."""
        messages = (wish for work, terms in self.terms(beta, self.floor) for wish in message_wishes(work, terms))
        found = [wish for wish in (*self.step_wishes(beta), *messages) if not wish.over(beta)]
        return sorted(found, key=lambda wish: -wish.tdf)

    def buckets(self, scale: Scale) -> int | None:
        """The most collectives that layer gradients may be cut into at this scale; None if no merging is needed."""
        most = max((item.buckets[0] for work in self.works for item in work.items if item.buckets), default=0)
        if most <= self.floor or self._merged_enough(scale, None):
            return None
        counts = range(most - 1, self.floor, -1)
        return next((count for count in counts if self._merged_enough(scale, count)), self.floor)

    def _merged_enough(self, scale: Scale, buckets: int | None) -> bool:
        found = (limit for work, terms in self.terms(scale.beta, buckets) for limit in merging_limits(work, terms))
        return not any(limit.over(scale.tdf) for limit in found)

    # -- rates and time -----------------------------------------------------------------------------------------------

    def check_rates(self, beta: float, *key: str) -> None:
        """Raise InputError at `key` of `emulation` if some link would be too slow to time anything."""
        for work in self.works:
            link = min(work.built.fabric.links, key=lambda link: link.rate)
            if link.rate / beta < SMALLEST_RATE:
                problem = (
                    f"{work.name}: {link} would run at {format_rate(link.rate / beta)} (beta {beta:g}); below "
                    f"{format_rate(SMALLEST_RATE)} there is nothing to time"
                )
                hint = "use fewer hosts, rates that differ less, or a smaller beta"
                raise self.scenario.error(("emulation", *key), problem, hint=hint)

    def estimates(self, scale: Scale) -> tuple[Estimate, ...]:
        """Wall time by fabric."""
        smallest = self.smallest_sent * scale.sigma
        runs = scale.tdf * TRAFFIC_MARGIN * self.scenario.repeat
        labs = 2 if self.scenario.emulation.scale == "auto" else 1  # one to find the capacity, one to measure
        return tuple(
            Estimate(
                fabric=work.name,
                start=labs * LAB_START,
                calibrate=CALIBRATION + EPOCH_CALIBRATION * (len(work.built.epochs(work.changes)) - 1),
                traffic=work.busy(smallest) * runs,
            )
            for work in self.works
        )

    def total(self, scale: Scale) -> float:
        """Wall time of all fabrics, one lab after the other."""
        return sum(estimate.total for estimate in self.estimates(scale))
