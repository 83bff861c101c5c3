"""What a lab measures of every change of circuits: the figures of its dark time, and what each circuit carried.

Four figures, from four places, never mixed: what was *asked*; the *control* plane's, from the controller's stamps; the
*data plane*'s, from probe frames (`emu.lab.probing`); the *service*'s, from the receivers of the flows that cross the
circuits (`emu.lab.service`). Service minus data plane is the transport's share. What was not measured stays empty.

`DarkTime` is told of a change at its hand-over, when its circuits went dark and when it ended. It fills the change's
row a little later, when the first frames have come through: at the latest when the next change begins or the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache

from controllers.channel import Committed, Staged
from controllers.circuits import darkened
from controllers.epochs import Epoch
from controllers.paths import Forwarder
from controllers.tables import Tables
from emu.lab.holding import HoldMeter
from emu.lab.lab import Lab
from emu.lab.probelog import PATIENCE_NS
from emu.lab.probing import Prober
from emu.lab.service import ServiceWatch
from emu.lab.toll import Toll
from emu.lab.usage import UseMeter
from emu.measurement import CircuitChange, CircuitUse
from emu.packet.lanes import LaneKey, Lanes
from topologies.fabric import Fabric, Port


class DarkTime:
    """Measures the changes of one repeat. Made when it begins; `close` it after `finish`."""

    def __init__(
        self, lab: Lab, lanes: Lanes, epoch: Epoch, tdf: float, *, ahead: float = 0.0, tail: float = 0.05
    ) -> None:
        """`epoch` is lit.

        ahead: wall seconds before a change's instant at which its traffic may go another way already. tail: see Toll.
        """
        self._fabric, self._loop, self._tdf = lab.fabric, lab.loop, tdf
        self._dpids = lab.control.dpids
        kernel = lab.datapath == "kernel"
        self._prober = Prober(lab.fabric, lab.ports, lab.loop, ticked=self._ticked, filtered=kernel)
        self._service = ServiceWatch(lanes)
        self._use = UseMeter(lab.fabric, epoch, self._prober.carried)
        self._toll = Toll(lab.fabric, lanes, lab.loop, self._counted, tail)
        self._hold = HoldMeter(lab.control.holding, lab.loop) if lab.control.holding is not None else None
        self._ahead = ahead
        self._affected: Callable[[LaneKey], bool] | None = None
        self._asked_ns = 0
        self._middle_ns: int | None = None
        self._ended: tuple[CircuitChange, Committed] | None = None

    # -- what happens to a change -------------------------------------------------------------------------------------

    def begin(self, old: Epoch, new: Epoch, tables: Tables, at_ns: int | None, dark_ns: int) -> None:
        """A change was handed over. tables: those of `old`. at_ns: its instant; None: at once, while nothing moves."""
        self._fill()
        if at_ns is None:
            return
        exits = {Port(ocs, circuit.out_port) for ocs, gone in darkened(old, new).items() for circuit in gone}
        self._affected = _crossing(self._fabric, tables, exits)
        self._asked_ns, self._middle_ns = at_ns, None
        self._prober.begin(old, new, at_ns, dark_ns)
        self._toll.begin(old, new, at_ns / 1e9 - self._ahead)
        if self._hold is not None:
            self._hold.begin()

    def darkened(self, stage: Staged, dark_ns: int) -> None:
        """The circuits that change are dark, and will be for so long."""
        self._affected = None
        self._service.darkened()
        light_ns = stage.sent_ns + dark_ns
        self._prober.expect_light(light_ns)
        if self._hold is not None:
            self._hold.expect_light(light_ns / 1e9)
        self._middle_ns = (stage.replied_ns + light_ns) // 2 if dark_ns else None

    def committed(self, done: Committed, change: CircuitChange, epoch: Epoch) -> None:
        """The new circuits were acknowledged; `change` is the row to fill."""
        self._middle_ns = None
        self._use.commit(epoch, change.dark_at, change.lit_at)
        self._service.lit(done.light.replied_ns / 1e9)
        self._prober.acknowledged(done.light.replied_ns)
        self._toll.committed(done.light.replied_ns / 1e9)
        self._ended = (change, done)

    def given_up(self, holds: Epoch | None, now: float) -> None:
        """The change was aborted. holds: its epoch, if it was too late for that."""
        self._affected = self._middle_ns = None
        self._prober.finish()
        self._service.end(self._tdf)
        if holds is None:
            self._use.kept()
        else:
            self._use.commit(holds, now, now)

    # -- at the end ---------------------------------------------------------------------------------------------------

    def finish(self, end: float) -> list[CircuitUse]:
        """Wait for the first frames of the last change, and return what every circuit carried until `end`."""
        deadline = time.monotonic() + PATIENCE_NS / 1e9
        while self._ended is not None and (self._prober.busy or self._toll.open) and time.monotonic() < deadline:
            self._loop.turn(deadline)
        self._fill()
        self._prober.settle()
        return self._use.finish(end)

    @property
    def probes(self) -> Mapping[Port, int]:
        """By transmitting port: the probe frames that it counted."""
        return self._prober.carried

    def close(self) -> None:
        """Free every descriptor."""
        self._prober.close()
        self._toll.close()
        if self._hold is not None:
            self._hold.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _ticked(self, now_ns: int) -> None:
        """Probes were sent: shortly before the change, the flows are followed; in its midst, counters are read."""
        if self._affected is not None:
            self._service.begin(self._affected, self._asked_ns / 1e9)
            self._affected = None
        if self._middle_ns is not None and now_ns > self._middle_ns:
            self._middle_ns = None
            self._prober.collect()
            self._use.read()

    def _counted(self) -> Mapping[Port, int]:
        """By transmitting port, the probe frames that it counted so far."""
        self._prober.collect()
        return self._prober.carried

    def _fill(self) -> None:
        """Fill the row of the change that ended last."""
        self._prober.finish()
        self._toll.end()
        gaps = self._service.end(self._tdf)
        if self._ended is not None:
            (change, done), self._ended = self._ended, None
            change.service = gaps
            change.data_plane = self._prober.results(done, self._dpids, self._tdf)
            self._toll.fill(change)
            if self._hold is not None:
                self._hold.fill(change)
        self._prober.forget()


def _crossing(fabric: Fabric, tables: Tables, exits: set[Port]) -> Callable[[LaneKey], bool]:
    """Whether a lane's way leads through one of these exits."""
    forwarder = Forwarder(fabric, tables)

    @cache
    def crosses(src: Port, dst: Port) -> bool:
        return not exits.isdisjoint(forwarder.path(src, dst) or ())

    return lambda key: crosses(key.src, key.dst)
