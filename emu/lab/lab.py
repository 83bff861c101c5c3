"""One fabric, built and wired up inside a room: Open vSwitch, Mininet, controller, and the sockets of every host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from controllers.epochs import Epoch
from emu.lab import hosts, wiring
from emu.lab.control import Control
from emu.lab.counters import Transmitters, emulated_rates
from emu.lab.delays import check_delays, delays_made, emulated_delays
from emu.lab.errors import LabError
from emu.lab.holding import Holding, held_bytes
from emu.lab.network import LabNet
from emu.lab.openvswitch import OpenVSwitch, SocketBuffers
from emu.lab.system import Datapath, probe_datapath, raise_descriptor_limit
from emu.packet.lanes import Lanes
from emu.packet.loop import Loop
from emu.progress import Progress, Stage
from emu.queues import queue_bytes, queue_floor
from emu.scenario.build import BuiltFabric
from emu.scenario.schema import Scenario
from topologies.fabric import Port


class Lab:
    """Everything that is alive in a lab. Built in steps, so that each can be shown and timed."""

    def __init__(
        self, scenario: Scenario, built: BuiltFabric, directory: Path, tell: Callable[[Progress], None]
    ) -> None:
        """`directory` must be private to the lab and die with it (a tmpfs)."""
        self.scenario, self.built, self.fabric = scenario, built, built.fabric
        self.stage_wall: dict[str, float] = {}
        self.notes: list[str] = []
        self.datapath = self._pick_datapath()
        self.switch = OpenVSwitch(directory / "ovs")
        self.control = Control(self.fabric, scenario.seed, directory)
        self.loop = Loop()
        self.buffers: SocketBuffers | None = None
        self._tell, self._began, self._stage = tell, time.monotonic(), ""
        self.delays = self._makes_delays()

    # -- building ------------------------------------------------------------

    def build(self, tdf: float) -> None:
        """Start Open vSwitch and the controller, make hosts, bridges and cables, set up every host."""
        self.say("build", f"{len(self.fabric.hosts)} hosts, {len(self.control.dpids)} switches")
        raise_descriptor_limit()
        hosts.quiet_ipv6()
        self.switch.start()
        self.library = self.control.start()
        self.net = LabNet(self.fabric, datapath=self.datapath, mtu=self.scenario.emulation.mtu)
        self.net.start()
        transport = self._transport(tdf)
        for host in self.fabric.hosts:
            hosts.configure(self.fabric, host.name, self.net.namespaces[host.name], transport, self.datapath)
        if self.built.dark.mode == "hold":
            self.control.holding = Holding(self.net)
        self.ports = Transmitters(self.net)
        self.buffers = SocketBuffers(self.switch.switchd_pid)
        self.raise_buffers()

    def install(self, epoch: Epoch) -> None:
        """Wait for the switches and install an epoch's tables, read back."""
        self.say("controller", f"epoch {epoch.number} by {self.library}")
        self.control.wait_for_switches()
        self.control.install(epoch)

    def verify_wiring(self) -> None:
        """Probe every cable, then raise the buffers of the socket that Open vSwitch opened to send."""
        probes = wiring.verify_wiring(self.fabric, self.ports)
        self.say("verify", f"{probes} probes over {len(self.fabric.links)} cables")
        self.raise_buffers()

    def shape(self, beta: float, sigma: float) -> int:
        """Shape every transmitter to its scaled rate; returns the queue in bytes."""
        queue = self.queue_bytes(sigma)
        delays = emulated_delays(self.fabric, beta / sigma) if self.delays else {}
        self.ports.shape_all(emulated_rates(self.fabric, beta), queue, delays)
        if self.control.holding is not None:
            held = held_bytes(self.fabric, self.built.dark.buffer, self.built.reconfiguration, sigma)
            self.control.holding.shape(beta, queue, held)
        return queue

    def open_lanes(self) -> Lanes:
        """Listen on every NIC."""
        return Lanes(self.loop, self.fabric, self.net.namespaces, self.scenario.transport.cc)

    # -- using -----------------------------------------------------------------

    def queue_bytes(self, sigma: float) -> int:
        """The queue behind each transmitter: the scenario's over sigma, floored to some frames."""
        return queue_bytes(self.scenario.emulation, sigma)

    @property
    def queue_floor(self) -> int:
        """The smallest queue in bytes."""
        return queue_floor(self.scenario.emulation)

    def raise_buffers(self) -> None:
        """Raise the buffers of every socket of Open vSwitch's that is new; note it where that is refused."""
        if self.buffers is None or self.datapath == "kernel":
            return
        try:
            self.buffers.raise_all()
        except PermissionError as error:
            self.buffers = None
            self.notes.append(f"Open vSwitch's socket buffers could not be raised ({error}); expect losses")

    def check_alive(self) -> None:
        """Raise LabError if a daemon of the lab has ended."""
        if not self.switch.alive():
            raise LabError("Open vSwitch has ended during the run")

    def say(self, stage: Stage, text: str, fraction: float | None = None) -> None:
        """Tell how far the lab is, and keep the time that each stage takes."""
        now = time.monotonic()
        if stage != self._stage:
            if self._stage:
                self.stage_wall[self._stage] = self.stage_wall.get(self._stage, 0.0) + now - self._began
            self._stage, self._began = stage, now
        self._tell(Progress(stage, text, self.fabric.name, fraction))

    def names(self, ports: Iterable[Port]) -> str:
        """Links as people read them: from which port to which."""
        return ", ".join(f"{port} -> {self.fabric.peer(port)}" for port in sorted(ports))

    # -- helpers -------------------------------------------------------------------

    def _transport(self, tdf: float) -> hosts.TransportSettings:
        transport = self.scenario.transport
        return hosts.TransportSettings(
            congestion_control=transport.cc,
            rto_min=transport.rto_min * tdf,
            initcwnd=transport.initcwnd,
            slow_start_after_idle=transport.slow_start_after_idle,
        )

    def _pick_datapath(self) -> Datapath:
        asked, found = self.scenario.emulation.datapath, probe_datapath()
        if asked == "kernel" and found == "user":
            raise LabError(
                "datapath: kernel was asked for and the openvswitch module is not loaded; "
                "fix: modprobe openvswitch, or write datapath: auto"
            )
        return found if asked == "auto" else asked

    def _makes_delays(self) -> bool:
        """Whether the links' delays are made. Raises InputError where they must be and cannot."""
        check_delays(self.scenario, [self.built])
        made, delayed = delays_made(self.fabric), sum(link.delay > 0 for link in self.fabric.links)
        if delayed and not made:
            self.notes.append(f"the delays of {delayed} links were left out (delay: best-effort)")
        return made
