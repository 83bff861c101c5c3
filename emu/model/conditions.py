"""Under which conditions the model runs a workload: circuits over time, and what a byte costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from controllers.dark import DROP, Dark
from controllers.epochs import Epoch, EpochChange
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.scheduled import Scheduled
from emu.model.transport import IDEAL, Transport


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything but the fabric and the workload.

    initial: the circuits at time zero.
    changes: what replaces them, in the order of time; each begins after the one before is lit. Their epochs are
        numbered on from the initial one, whatever numbers they have.
    seed: what routes are drawn with.
    efficiency: payload bytes per byte of line rate, see `emu.wire.payload_efficiency`.
    alpha: seconds that pass on the connection before a transfer's first byte (the alpha of alpha + bytes/rate).
    delays: whether the links' delays count. If so, a transfer is received one path delay after it was drained,
        while its connection goes on with the next; and a `new` connection first takes a round trip to be opened.
    policy: what decides circuits; None: the changes are all there is.
    reconfiguration: seconds that a change of the policy's is dark.
    lead: seconds from a decision to the earliest dark time for it (a real control plane's, or a lab's).
    dark: what becomes of traffic in the dark. ahead: seconds before circuits go dark at which a detour begins.
    transport: what connections do beside sharing links fairly.

    Raises ValueError for an impossible efficiency or alpha, and for changes out of order or overlapping.
    """

    initial: Epoch = field(default_factory=Epoch)
    changes: tuple[EpochChange, ...] = ()
    seed: int = 0
    efficiency: float = 1.0
    alpha: float = 0.0
    delays: bool = False
    policy: CircuitPolicy | None = None
    reconfiguration: float = 0.0
    lead: float = 0.0
    transport: Transport = IDEAL
    dark: Dark = DROP
    ahead: float = 0.0

    @property
    def deciding(self) -> CircuitPolicy:
        """The policy, or the one that follows `changes`."""
        return Scheduled(self.changes) if self.policy is None else self.policy

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= 1:
            raise ValueError(f"efficiency must be above 0 and at most 1, not {self.efficiency}")
        if not 0 <= self.alpha < float("inf"):
            raise ValueError(f"alpha must be a time of 0 s or more, not {self.alpha}")
        if self.policy is not None and self.changes:
            raise ValueError("circuits follow a policy or a list of changes, not both")
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
