"""Under which conditions the model runs a workload: circuits over time, and what a byte costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from controllers.epochs import Epoch, EpochChange


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything but the fabric and the workload.

    initial: the circuits at time zero.
    changes: what replaces them, in the order of time; each begins after the one before is lit.
    seed: what routes are drawn with.
    efficiency: payload bytes per byte of line rate, see `emu.wire.payload_efficiency`.
    alpha: seconds that pass on the connection before a transfer's first byte (the alpha of alpha + bytes/rate).
    delays: whether the links' delays count. If so, a transfer is received one path delay after it was drained,
        while its connection goes on with the next; and a `new` connection first takes a round trip to be opened.

    Raises ValueError for an impossible efficiency or alpha, and for changes out of order or overlapping.
    """

    initial: Epoch = field(default_factory=Epoch)
    changes: tuple[EpochChange, ...] = ()
    seed: int = 0
    efficiency: float = 1.0
    alpha: float = 0.0
    delays: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= 1:
            raise ValueError(f"efficiency must be above 0 and at most 1, not {self.efficiency}")
        if not 0 <= self.alpha < float("inf"):
            raise ValueError(f"alpha must be a time of 0 s or more, not {self.alpha}")
        for change in self.changes:
            if change.at < 0 or change.reconfiguration < 0:
                raise ValueError(
                    f"the change to epoch {change.epoch.number} at {change.at} s, lasting {change.reconfiguration} s, "
                    "has a negative time"
                )
        for earlier, later in pairwise(self.changes):
            lit = earlier.at + earlier.reconfiguration
            if later.at < lit:
                raise ValueError(
                    f"the change to epoch {later.epoch.number} at {later.at} s begins before epoch "
                    f"{earlier.epoch.number} is lit at {lit} s"
                )
