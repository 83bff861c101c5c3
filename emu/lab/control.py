"""The lab's controller, and the circuit schedule that it is handed."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controllers.channel import Aborted, Committed, ControllerError, Fault, Prepare, Prepared, Refused, SwitchLost
from controllers.checks import TableError, verify
from controllers.client import Answered, ControllerClient
from controllers.epochs import Epoch, EpochChange
from controllers.process import ControllerProcess
from controllers.routes import routes
from controllers.tables import Tables
from controllers.transition import transition
from emu.lab.errors import LabError
from emu.lab.network import CONTROLLER, datapath_id
from emu.measurement import CircuitChange
from emu.packet.clock import ModelClock
from emu.packet.loop import Loop
from topologies.fabric import Fabric, Kind
from workloads.protocol import EpochAborted, EpochCommitted, Event

_TIMEOUT = 15.0
LEAD = 0.2
"""Wall seconds before its instant at which a change is handed over: filling its bundles takes a few milliseconds."""


@contextmanager
def _as_lab_error(what: str) -> Iterator[None]:
    try:
        yield
    except ControllerError as error:
        raise LabError(f"{what}: {error}") from error


class Control:
    """The controller process of a lab, and the tables that its switches hold."""

    def __init__(self, fabric: Fabric, seed: int, directory: Path) -> None:
        """Nothing is started yet; `directory` takes its socket and log."""
        self.fabric, self.seed = fabric, seed
        self.dpids = {node.name: datapath_id(fabric, node.name) for node in fabric.nodes if node.kind is not Kind.HOST}
        self._process = ControllerProcess(directory / "controller.sock", listen=":".join(map(str, CONTROLLER)))
        self._client: ControllerClient | None = None

    def start(self) -> str:
        """Start the process; returns the name and version of its OpenFlow library."""
        with _as_lab_error("controller"):
            self._client = self._process.start()
        return self._client.library

    @property
    def client(self) -> ControllerClient:
        """The connection to the process. Raises LabError before `start`."""
        if self._client is None:
            raise LabError("the controller was not started")
        return self._client

    def wait_for_switches(self) -> None:
        """Wait until every switch has connected."""
        with _as_lab_error("controller"):
            self.client.wait_connected(self.dpids.values(), _TIMEOUT)

    def tables(self, epoch: Epoch) -> Tables:
        """The tables of an epoch, checked: loops and black holes are refused before anything is installed."""
        tables = routes(self.fabric, epoch, self.seed)
        try:
            verify(self.fabric, epoch, tables)
        except TableError as error:
            raise LabError(f"the tables of epoch {epoch.number} are refused: {error}") from error
        return tables

    def install(self, epoch: Epoch) -> int:
        """Make every switch hold exactly the epoch's tables, read back; returns the number of rules."""
        tables = {self.dpids[switch]: table for switch, table in self.tables(epoch).items()}
        with _as_lab_error("install"):
            return self.client.install(tables, _TIMEOUT).rules

    def foreign_rules(self) -> list[tuple[str, str]]:
        """Switches that no longer hold exactly what was installed and committed, with what differs."""
        found = []
        for switch, dpid in self.dpids.items():
            try:
                self.client.verify([dpid], _TIMEOUT)
            except ControllerError as error:
                found.append((switch, error.reason))
        return found

    def barrier_times(self, count: int = 40) -> list[float]:
        """Round trips of barriers to one switch (an OCS if there is one), in seconds."""
        switch = next((node.name for node in self.fabric.ocses), self.fabric.switches[0].name)
        with _as_lab_error("barriers"):
            return self.client.measure_barriers(self.dpids[switch], count)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


class ScheduledCircuits:
    """Hands a schedule of circuit changes to the controller, one at a time, as modelled time reaches them."""

    def __init__(self, control: Control, initial: Epoch, schedule: Sequence[EpochChange], loop: Loop) -> None:
        """`initial` must be installed already."""
        self.changes: list[CircuitChange] = []
        self._control, self._epoch, self._left = control, initial, list(schedule)
        self._pending: EpochChange | None = None
        self._clock = ModelClock(1.0)
        self._events: list[tuple[Event, float]] = []
        self._loop = loop
        loop.watch(control.client.fileno(), select.EPOLLIN, lambda _: self.poll())

    def next_handover(self) -> float | None:
        """When the next change must be handed over, in modelled seconds."""
        if self._pending is not None or not self._left:
            return None
        return max(0.0, self._left[0].at - LEAD / self._clock.tdf)

    def use(self, clock: ModelClock) -> None:
        """The clock by which the schedule's times are meant."""
        self._clock = clock

    def hand_over(self, clock: ModelClock) -> None:
        """Give the next change to the controller, with its absolute instant."""
        self._clock = clock
        change = self._pending = self._left.pop(0)
        step = transition(
            self._control.tables(self._epoch),
            self._control.tables(change.epoch),
            frozenset(node.name for node in self._control.fabric.ocses),
            self._control.dpids,
        )
        at, dark = clock.wall(change.at), change.reconfiguration * clock.tdf
        request = Prepare(str(change.epoch.number), step.dark, step.light, round(at * 1e9), round(dark * 1e9))
        with _as_lab_error("circuits"):
            self._control.client.submit(request)

    @property
    def busy(self) -> bool:
        """Whether a change was handed over and has not ended."""
        return self._pending is not None

    def take_events(self) -> list[tuple[Event, float]]:
        """What the orchestrator should hear since the last call."""
        out, self._events = self._events, []
        return out

    def poll(self) -> None:
        """Hear what the controller says. Raises LabError if a switch or the controller is gone."""
        with _as_lab_error("circuits"):
            for heard in self._control.client.poll():
                match heard:
                    case Committed():
                        self._commit(heard)
                    case Aborted():
                        self._abort(heard.reason, heard.outcome == "committed")
                    case Answered(answer=Refused() as refused):
                        self._abort(refused.reason, False)
                    case SwitchLost() | Fault():
                        raise ControllerError(heard.reason, heard.dpid)
                    case Answered(answer=Prepared()):
                        pass
                    case _:
                        pass

    def stop(self) -> None:
        """Stop to listen."""
        self._loop.forget(self._control.client.fileno())

    def _commit(self, done: Committed) -> None:
        change = self._end()
        self.changes.append(
            CircuitChange(
                epoch=change.epoch.number,
                asked_at=change.at,
                asked_dark=change.reconfiguration,
                dark_at=self._modelled(done.dark.sent_ns),
                lit_at=self._modelled(done.light.replied_ns),
                late_wall=done.dark.lateness,
            )
        )
        self._epoch = change.epoch
        self._events.append((EpochCommitted(change.epoch.number), self._clock.now()))

    def _abort(self, reason: str, committed: bool) -> None:
        change = self._end()
        now = self._clock.now()
        self.changes.append(
            CircuitChange(change.epoch.number, change.at, change.reconfiguration, now, now, 0.0, f"aborted: {reason}")
        )
        if committed:
            self._epoch = change.epoch
        self._events.append((EpochAborted(change.epoch.number, reason), now))

    def _end(self) -> EpochChange:
        change, self._pending = self._pending, None
        if change is None:
            raise LabError("the controller ended a change that was not handed to it")
        return change

    def _modelled(self, instant_ns: int) -> float:
        return self._clock.now() - (time.monotonic() - instant_ns / 1e9) / self._clock.tdf
