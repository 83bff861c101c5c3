"""The lab's controller: its process, and the tables that its switches hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from controllers.channel import ControllerError
from controllers.checks import TableError, verify
from controllers.client import ControllerClient
from controllers.epochs import Epoch, EpochChange, OcsCircuit
from controllers.process import ControllerProcess
from controllers.routes import routes
from controllers.tables import Tables
from emu.lab.errors import LabError
from emu.lab.holding import Holding
from emu.lab.network import CONTROLLER, datapath_id
from topologies.fabric import Fabric, Kind

_TIMEOUT = 15.0
_TABLES_KEPT = 64


@contextmanager
def as_lab_error(what: str) -> Iterator[None]:
    """Make what the controller could not do a LabError; `what`: what it was asked for."""
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
        self.holding: Holding | None = None
        """The queues of a lab that holds traffic in the dark."""

    def start(self) -> str:
        """Start the process; returns the name and version of its OpenFlow library."""
        with as_lab_error("controller"):
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
        with as_lab_error("controller"):
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

    def realised(self, epoch: Epoch) -> Tables:
        """The tables of an epoch as switches hold them: with the queues that hold traffic, if there are any."""
        return self.tables(epoch) if self.holding is None else self.holding.realised(epoch, self.tables(epoch))

    def install(self, epoch: Epoch) -> int:
        """Make every switch hold exactly the epoch's tables, read back; returns the number of rules."""
        realised = self.realised(epoch)
        tables = {self.dpids[switch]: table for switch, table in realised.items()}
        with as_lab_error("install"):
            rules = self.client.install(tables, _TIMEOUT).rules
        if self.holding is not None:
            self.holding.follow(realised)
        return rules

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
        with as_lab_error("barriers"):
            return self.client.measure_barriers(self.dpids[switch], count)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()
