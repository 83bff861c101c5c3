"""The lab's controller, and the changes of circuits that it is handed."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NoReturn, Protocol

from controllers.channel import (
    Aborted,
    Committed,
    ControllerError,
    Fault,
    Prepare,
    Prepared,
    Refused,
    Staged,
    SwitchLost,
)
from controllers.checks import TableError, verify
from controllers.client import Answered, ControllerClient
from controllers.decisions import Decision
from controllers.epochs import Epoch, EpochChange, OcsCircuit
from controllers.keeper import Keeper
from controllers.loads import Load
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.scheduled import Scheduled
from controllers.process import ControllerProcess
from controllers.routes import routes
from controllers.tables import Tables
from controllers.transition import transition
from emu.lab.errors import LabError
from emu.lab.network import CONTROLLER, datapath_id
from emu.measurement import CircuitChange
from emu.packet.circuits import DECISION_LEAD
from emu.packet.clock import ModelClock
from emu.packet.loop import Loop
from topologies.fabric import Fabric, Kind
from workloads.protocol import Announce, Event

_TIMEOUT = 15.0
LEAD = 0.2
"""Wall seconds before its instant at which a change is handed over: filling its bundles takes a few milliseconds."""
_PASSING = 1.0
"""Wall seconds that laying circuits while nothing is in flight may take, or it is not worth while."""
_TABLES_KEPT = 64


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
        self._numbers = count(1)
        self._tables: dict[frozenset[OcsCircuit], Tables] = {}

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
        """The tables of an epoch, checked: loops and black holes are refused before anything is installed.

        Those of circuits that were met before are kept: a change must not hold traffic up.
        """
        if epoch.lit not in self._tables:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            self._tables[epoch.lit] = self._checked(epoch)
        return self._tables[epoch.lit]

    def _checked(self, epoch: Epoch) -> Tables:
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

    def name_of(self, change: EpochChange) -> str:
        """A name for one change that no other has: repeats in one lab go through the same epochs again."""
        return f"{change.epoch.number}#{next(self._numbers)}"

    def blame(self, reason: str, dpid: int | None) -> str:
        """A reason with the switch that is to blame, by its name."""
        names = {number: name for name, number in self.dpids.items()}
        return reason if dpid is None else f"{names.get(dpid, f'switch {dpid}')}: {reason}"

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


class Witness(Protocol):
    """Whoever measures changes of circuits while they happen."""

    def begin(self, old: Epoch, new: Epoch, tables: Tables, at_ns: int | None, dark_ns: int) -> None:
        """A change was handed over; see `Prepare`. tables: those of `old`."""
        ...

    def darkened(self, stage: Staged, dark_ns: int) -> None:
        """The circuits that change are dark, for so long."""
        ...

    def committed(self, done: Committed, change: CircuitChange, epoch: Epoch) -> None:
        """The circuits of `epoch` were acknowledged; `change` may still be filled in."""
        ...

    def given_up(self, holds: Epoch | None, now: float) -> None:
        """The change was aborted; `holds`: its epoch, if that holds all the same."""
        ...


class LabCircuits:
    """Has circuits changed as a policy decides: hands each change to the controller and hears how it went."""

    def __init__(
        self,
        control: Control,
        initial: Epoch,
        policy: CircuitPolicy,
        reconfiguration: float,
        loop: Loop,
        witness: Witness | None = None,
    ) -> None:
        """`initial` must be installed already; nothing is decided before `use`. witness: told of every change."""
        self.changes: list[CircuitChange] = []
        self._control, self._loop = control, loop
        self._initial, self._policy, self._reconfiguration = initial, policy, reconfiguration
        self._installed = initial
        self._pending: EpochChange | None = None
        self._witness = witness
        self.use(ModelClock(1.0))
        loop.watch(control.client.fileno(), select.EPOLLIN, lambda _: self.poll())

    def use(self, clock: ModelClock, loads: Callable[[], Iterable[Load]] = lambda: ()) -> None:
        """Time zero of a run: `clock` is what times are meant by, `loads` what still has to cross the fabric."""
        self._clock = clock
        self._keeper = Keeper(
            self._control.fabric,
            self._policy,
            self._initial,
            self._reconfiguration,
            seed=self._control.seed,
            ahead=LEAD / clock.tdf,
            lead=DECISION_LEAD / clock.tdf,
            loads=loads,
        )
        self._keeper.start()

    @property
    def decisions(self) -> list[Decision]:
        """What was decided so far, in order."""
        return self._keeper.decisions

    @property
    def ended(self) -> int:
        """How many changes are over."""
        return len(self.changes)

    @property
    def patience(self) -> int:
        """So many changes show every set of circuits that the policy knows."""
        return len(self._policy.known()) + 2

    def announce(self, announced: Announce, now: float) -> None:
        """The workload announced a phase."""
        self._keeper.announce(announced.phase, announced.demand, announced.slack, now)

    def next_handover(self) -> float | None:
        """When a change must be handed over or looked at again, in modelled seconds."""
        return self._keeper.next_at

    def hand_over(self, clock: ModelClock) -> None:
        """Give the change that is due, if there is one, to the controller, with its absolute instant."""
        self._clock = clock
        change = self._keeper.due(clock.now())
        if change is not None:
            self._submit(change, round(clock.wall(change.at) * 1e9))

    def pass_over(self, until: float) -> bool:
        """Nothing will be in flight until `until`: lay the circuits of then at once if they would change repeatedly."""
        now = self._clock.now()
        change = self._keeper.pass_over(now, until - _PASSING / self._clock.tdf)
        if change is not None:
            self._submit(change, None)
        return change is not None

    def _submit(self, change: EpochChange, at_ns: int | None) -> None:
        self._pending = change
        step = transition(
            self._control.tables(self._installed),
            self._control.tables(change.epoch),
            frozenset(node.name for node in self._control.fabric.ocses),
            self._control.dpids,
        )
        dark = self._dark_ns(change)
        if self._witness is not None:
            tables = self._control.tables(self._installed)
            self._witness.begin(self._installed, change.epoch, tables, at_ns, dark)
        with _as_lab_error("circuits"):
            self._control.client.submit(Prepare(self._control.name_of(change), step.dark, step.light, at_ns, dark))

    @property
    def busy(self) -> bool:
        """Whether a change was handed over and has not ended."""
        return self._pending is not None

    def take_events(self) -> list[tuple[Event, float]]:
        """What the orchestrator should hear since the last call."""
        return self._keeper.take_events()

    def poll(self) -> None:
        """Hear what the controller says. Raises LabError if a switch or the controller is gone."""
        with _as_lab_error("circuits"):
            for heard in self._control.client.poll():
                match heard:
                    case Staged():
                        self._stage(heard)
                    case Committed():
                        self._commit(heard)
                    case Aborted():
                        self._abort(self._control.blame(heard.reason, heard.dpid), heard.outcome == "committed")
                    case Answered(answer=Refused() as refused):
                        self._abort(self._control.blame(refused.reason, refused.dpid), False)
                    case SwitchLost() | Fault():
                        self._give_up(self._control.blame(heard.reason, heard.dpid))
                    case Answered(answer=Prepared()):
                        pass
                    case _:
                        pass

    def stop(self) -> None:
        """Stop to listen."""
        self._loop.forget(self._control.client.fileno())

    def _stage(self, stage: Staged) -> None:
        if self._witness is not None and self._pending is not None and stage.stage == "dark":
            self._witness.darkened(stage, self._dark_ns(self._pending))

    def _dark_ns(self, change: EpochChange) -> int:
        return round(change.reconfiguration * self._clock.tdf * 1e9)

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
        if self._witness is not None:
            self._witness.committed(done, self.changes[-1], change.epoch)
        self._installed = change.epoch
        self._keeper.committed(self._clock.now())

    def _abort(self, reason: str, committed: bool) -> None:
        change = self._end()
        now = self._clock.now()
        self.changes.append(
            CircuitChange(change.epoch.number, change.at, change.reconfiguration, now, now, 0.0, f"aborted: {reason}")
        )
        if self._witness is not None:
            self._witness.given_up(change.epoch if committed else None, now)
        if committed:
            self._installed = change.epoch
        self._keeper.aborted(reason, now, holds=committed)

    def _give_up(self, reason: str) -> NoReturn:
        """The switches can no longer be relied on: the run ends, and a change that was under way is over."""
        if self._pending is not None:
            self._abort(reason, False)
        raise LabError(f"circuits: {reason}")

    def _end(self) -> EpochChange:
        change, self._pending = self._pending, None
        if change is None:
            raise LabError("the controller ended a change that was not handed to it")
        return change

    def _modelled(self, instant_ns: int) -> float:
        return self._clock.now() - (time.monotonic() - instant_ns / 1e9) / self._clock.tdf


class ScheduledCircuits(LabCircuits):
    """Changes at instants that are known beforehand."""

    def __init__(self, control: Control, initial: Epoch, schedule: Sequence[EpochChange], loop: Loop) -> None:
        """`initial` must be installed already."""
        super().__init__(control, initial, Scheduled(tuple(schedule)), 0.0, loop)
