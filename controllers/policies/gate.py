"""The slack gate: circuits change only if the change never stands in the way of what needs them.

Summaries of RFabric (arXiv 2601.01209) say: if the idle window is shorter than the reconfiguration takes end to end, or
the plan misses the window, the old topology stays, so that reconfiguration never blocks the critical path. How the
window is predicted was not found; ours is the announced slack, less the time that the bytes in flight on a circuit
still take at its rate, the least over all circuits to be torn down.
"""

from __future__ import annotations

import math

from controllers.circuits import darkened
from controllers.epochs import Epoch, Matchings, OcsCircuit
from controllers.loads import circuit_rate
from controllers.policies.protocol import Keep, Plan, View
from topologies.fabric import Fabric


def gate(
    fabric: Fabric, view: View, wanted: Matchings, *, slack: float, margin: float, now: float, what: str
) -> Plan | Keep:
    """A plan for `wanted` if there is time for it, else the reason to keep the circuits.

    slack: seconds until the fabric is needed. margin: seconds that are to be left over. what: to be laid, in words.

    The change begins when the circuits to be torn down should be empty, and no later than leaves time for itself: the
    lead with which it is decided, the reconfiguration and the margin.
    """
    gone = {OcsCircuit(ocs, c) for ocs, circuits in darkened(view.epoch, Epoch(0, wanted)).items() for c in circuits}
    if not gone:
        return Plan(wanted, reason=f"{what}: takes no circuit away")
    takes = view.lead + view.reconfiguration + margin
    busy = max(8 * view.in_flight.get(at, 0) / circuit_rate(fabric, at.ocs, at.circuit) for at in gone)
    facts = (
        f"{what}: {_directions(len(gone))} to be torn down: slack {_ms(slack)}, less {_ms(busy)} of bytes in flight on "
        f"them, against {_ms(takes)} that a change takes"
    )
    if slack - busy < takes:
        return Keep(facts)
    begin = now + busy
    return Plan(wanted, begin, facts, deadline=max(begin, now + slack - takes))


def _directions(count: int) -> str:
    """Circuits as people count them: a duplex one is two."""
    return f"{count} circuit direction{'' if count == 1 else 's'}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms" if math.isfinite(seconds) else "ever"
