"""What is done in a lab that stays open: traffic, circuits and counters of one fabric, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from controllers.epochs import Epoch
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.static import Static
from controllers.routes import path, reachable_pairs
from emu.lab.circuits import LabCircuits
from emu.lab.counters import PortCount
from emu.lab.errors import LabError
from emu.lab.lab import Lab
from emu.live import echo
from emu.live.messages import LiveRun
from emu.live.script import Once, transfers_of
from emu.measurement import CircuitChange
from emu.packet.charging import Charging
from emu.packet.clock import ModelClock
from emu.packet.engine import PacketEngine, lane_keys
from emu.packet.lanes import LaneKey, Lanes
from emu.queues import moving_time
from emu.records import FailureRecord
from emu.scale import Scale
from emu.scenario.build import BuiltFabric, cluster_of
from emu.scenario.schema import Scenario
from topologies.fabric import Port
from workloads.protocol import Orchestrator, Transfer

_CHANGE_LIMIT = 30.0
"""Wall seconds after which a change of circuits that was asked for is given up."""


class _OverdueError(Exception):
    """A workload has taken all the wall time that it was given."""


class Bench:
    """One lab, and what can be done with one. Nothing is built before `build`."""

    def __init__(self, scenario: Scenario, built: BuiltFabric, scale: Scale, directory: Path) -> None:
        """`scenario`: emulation, transport and seed. `directory` must be private to the lab and die with it."""
        self.built, self.fabric, self.epoch, self.scale = built, built.fabric, built.epoch, scale
        self.cluster = cluster_of(self.fabric)
        self.lab = Lab(scenario, built, directory, lambda progress: None)
        self._mtu = scenario.emulation.mtu
        self.started = 0.0
        """Wall seconds that `build` took."""

    def build(self) -> None:
        """Everything but tables: hosts, switches that are connected, wiring checked, links shaped."""
        began = time.monotonic()
        self.lab.build(self.scale.tdf)
        self.lab.control.wait_for_switches()
        self.lab.verify_wiring()
        self.lab.shape(self.scale.beta, self.scale.sigma)
        self.started = time.monotonic() - began

    def install(self) -> None:
        """The tables of the circuits that the fabric began with."""
        self.epoch = self.built.epoch
        self.lab.control.install(self.epoch)

    def reset(self) -> None:
        """As after `build` and `install`: first circuits, no connection. Counters go on."""
        self.hang_up()
        self.install()

    # -- connections --------------------------------------------------------------------------------------------------

    @cached_property
    def lanes(self) -> Lanes:
        """The lab's connections, all its NICs listening.

        A first one is opened and closed, since Open vSwitch opens the socket that it sends by with the first packet.
        """
        lanes = self.lab.open_lanes()
        pair = next(reachable_pairs(self.fabric, self.epoch), None)
        if pair is not None:
            first = LaneKey(*pair, "first")
            lanes.open_all([first])
            lanes.close(first)
        self.lab.raise_buffers()
        return lanes

    def hang_up(self) -> None:
        """Close every connection; the next use listens anew."""
        if "lanes" in self.__dict__:
            self.lanes.close_all()
            del self.lanes

    def open_kept(self, transfers: Iterable[Transfer]) -> None:
        """Open the kept connections that these transfers will use, where the circuits of now have a way for them."""
        reachable = set(reachable_pairs(self.fabric, self.epoch))
        keys = lane_keys(self.fabric, transfers)
        self.lanes.open_all(key for key in keys if (key.src, key.dst) in reachable)

    # -- traffic ------------------------------------------------------------------------------------------------------

    def run(
        self,
        orchestrator: Orchestrator,
        policy: CircuitPolicy | None = None,
        timeout: float = 60.0,
        pulse: Callable[[float], None] = lambda now: None,
    ) -> LiveRun:
        """Run a workload to its end, or for `timeout` wall seconds; then what is not over has failed.

        policy: decides circuits meanwhile; None: they stay. pulse: as the engine's.
        """
        circuits = self._circuits(policy or Static())
        deadline = time.monotonic() + timeout

        def watch(now: float) -> None:
            self.lab.check_alive()
            pulse(now)
            if time.monotonic() > deadline:
                raise _OverdueError

        engine = self.engine(orchestrator, circuits, watch)
        try:
            engine.run()
        except _OverdueError:
            self._overdue(engine, timeout)
        finally:
            circuits.stop()
            self.epoch = circuits.holds
        trace = engine.dispatcher.trace
        if trace.failures:
            self.hang_up()  # bytes of what failed may still be in some stream
        return LiveRun(trace, circuits.changes, circuits.decisions, self.epoch, engine.late_lanes)

    def rehearsed(self, make: Callable[[], Orchestrator], policy: CircuitPolicy | None, timeout: float) -> LiveRun:
        """As `run`, with the connections that the workload keeps opened before time zero."""
        self.open_kept(transfers_of(make(), self.cluster))
        return self.run(make(), policy, timeout)

    def ping(self, src: Port, dst: Port, timeout: float) -> float | None:
        """The round trip of one ICMP echo in wall seconds, None if no answer came."""
        address = self.fabric.address
        return echo.ping(self.lab.net.namespaces[src.node], address(src), address(dst), timeout)

    def command(self, host: str, *command: str) -> str:
        """What a command prints in a host. Raises LabError, with its words, if it fails."""
        out, words, status = self.lab.net.get(host).pexec(*command)
        if status != 0:
            raise LabError(f"{host}: {' '.join(command)}: status {status}: {words.strip() or out.strip()}")
        return str(out)

    # -- circuits and switches ----------------------------------------------------------------------------------------

    def set_circuits(self, epoch: Epoch) -> CircuitChange | None:
        """Change to the circuits of `epoch`, dark time and all; None if they are lit already.

        Raises LabError if they are not acknowledged.
        """
        if epoch.lit == self.epoch.lit:
            return None
        circuits, clock = self._circuits(Once(epoch.matchings)), ModelClock(self.scale.tdf)
        deadline = time.monotonic() + _CHANGE_LIMIT
        clock.start()
        circuits.use(clock)
        try:
            while not circuits.ended and time.monotonic() < deadline:
                if (due := circuits.next_handover()) is not None and due <= clock.now():
                    circuits.hand_over(clock)
                self.lab.loop.turn(time.monotonic() + 0.01)
        finally:
            circuits.stop()
            self.epoch = circuits.holds
        outcome = circuits.changes[0].outcome if circuits.changes else f"not over after {_CHANGE_LIMIT:g} s"
        if outcome != "committed":
            raise LabError(f"circuits: {outcome}")
        return circuits.changes[0]

    def circuits(self) -> Epoch:
        """Those that are lit."""
        return self.epoch

    def counters(self) -> dict[Port, PortCount]:
        """What every port has transmitted since the lab began, OCS ports included."""
        return dict(self.lab.ports.read())

    def path(self, src: Port, dst: Port) -> tuple[Port, ...] | None:
        """The transmitting ports that the tables of the present circuits lead over, None if there is no way."""
        found = path(self.fabric, self.lab.control.tables(self.epoch), src, dst)
        return None if found is None else tuple(found)

    def foreign_rules(self) -> list[tuple[str, str]]:
        """Switches that do not hold exactly what was installed and committed, with what differs."""
        return self.lab.control.foreign_rules()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def engine(
        self, orchestrator: Orchestrator, circuits: LabCircuits, pulse: Callable[[float], None] = lambda now: None
    ) -> PacketEngine:
        """A packet engine for one run of a workload; see PacketEngine."""
        scale, charging = self.scale, Charging(self._mtu, 0.0, send=True)
        loop = self.lab.loop
        return PacketEngine(orchestrator, self.cluster, self.fabric, loop, self.lanes, scale, charging, circuits, pulse)

    def _circuits(self, policy: CircuitPolicy) -> LabCircuits:
        built, lab = self.built, self.lab
        ahead = moving_time(self.fabric, built.dark, lab.scenario.emulation, self.scale)
        return LabCircuits(
            *(lab.control, self.epoch, policy, built.reconfiguration, lab.loop), dark=built.dark, ahead=ahead
        )

    def _overdue(self, engine: PacketEngine, timeout: float) -> None:
        trace, now = engine.dispatcher.trace, engine.clock.now()
        for transfer, left in engine.dispatcher.outstanding():
            reason = f"{transfer.src} -> {transfer.dst}: {left} of {transfer.bytes} bytes to go after {timeout:g} s"
            trace.failures.append(FailureRecord(transfer.id, reason, now))
