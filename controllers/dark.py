"""What becomes of traffic whose circuits are about to go dark: the dark modes of a fabric.

`drop`: nothing is done; packets that meet a dark port are lost, and the transport recovers. `detour`: packet switches
send it over electrical links and circuits that stay, before the circuits go dark and until the new ones are lit.
`hold`: the switch that transmits into a circuit queues it, bounded, and sends it on when a circuit leads there again.
`drain`: the change waits until what has to cross the circuits is over, but no longer than until a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from controllers.epochs import Epoch
from controllers.paths import LitGraph
from topologies.fabric import Fabric, Kind, Port

DarkMode = Literal["drop", "detour", "hold", "drain"]
DARK_MODES: Final[tuple[DarkMode, ...]] = get_args(DarkMode)


@dataclass(frozen=True, slots=True)
class Dark:
    """A dark mode and its options; those of other modes are not used.

    deadline: of `drain`, modelled seconds after the instant for which a change was planned. The circuits then go dark
        all the same.
    buffer: of `hold`, the modelled bytes that a switch holds for one destination switch at most; None: what the
        circuit's rate brings in twice the reconfiguration time.
    """

    mode: DarkMode = "drop"
    deadline: float = 0.0
    buffer: int | None = None

    @property
    def patience(self) -> float | None:
        """Seconds for which a change waits for its circuits to be drained; None if it does not."""
        return self.deadline if self.mode == "drain" else None


DROP: Final = Dark()


def cut_off(fabric: Fabric) -> tuple[Port, Port] | None:
    """Two NICs of different hosts that no electrical path joins, None if there are none: what no detour can serve."""
    graph = LitGraph(fabric, Epoch())
    entries: dict[str, Port] = {}
    for nic in fabric.all_nics:
        landing, feeder = graph.landing.get(nic), graph.feeder(nic)
        if landing is None or feeder is None or fabric.node(feeder.node).kind is Kind.HOST:
            return nic, next(other for other in fabric.all_nics if other.node != nic.node)
        entries.setdefault(landing.node, nic)
    for switch, nic in entries.items():
        distances = graph.distances(switch)
        for other, source in entries.items():
            if other not in distances:
                return source, nic
    return None
