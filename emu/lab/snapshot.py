"""Every counter of a lab at one moment; a repeat is judged by the difference of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

from emu.lab.counters import PortCount, dark_drops, switch_drops
from emu.lab.holding import refused
from emu.lab.lab import Lab
from emu.lab.openvswitch import BUFFER_BYTES
from emu.lab.probing import FRAME_BYTES
from emu.lab.system import CpuTimes
from topologies.fabric import Port


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters since the lab began. `smallest_buffer` is a state: the smallest of Open vSwitch's socket buffers."""

    cpu: CpuTimes
    ports: Mapping[Port, PortCount]
    switch_drops: Mapping[Port, int]
    dark_drops: int
    receive_drops: int
    smallest_buffer: int
    retransmits: int

    @classmethod
    def take(cls, lab: Lab, probes: Mapping[Port, int] = MappingProxyType({})) -> Self:
        """Read them all. probes: by port, the frames (of `FRAME_BYTES`) that are no traffic, taken off again."""
        states = lab.buffers.states() if lab.buffers else ()
        ports = {port: _without(count, probes.get(port, 0)) for port, count in lab.ports.read().items()}
        return cls(
            cpu=CpuTimes.read(),
            ports=ports,
            switch_drops=switch_drops(lab.fabric),
            dark_drops=dark_drops(lab.fabric, ports) + refused(lab.control.holding),
            receive_drops=sum(state.drops for state in states),
            smallest_buffer=min((min(s.send_buffer, s.receive_buffer) for s in states), default=BUFFER_BYTES),
            retransmits=sum(_retransmits(lab, host.name) for host in lab.fabric.hosts),
        )


def _without(count: PortCount, probes: int) -> PortCount:
    return replace(count, bytes=count.bytes - probes * FRAME_BYTES, packets=count.packets - probes)


def _retransmits(lab: Lab, host: str) -> int:
    """Tcp RetransSegs of one host."""
    with lab.net.namespaces[host].entered():
        names, values = (
            row.split() for row in Path("/proc/thread-self/net/snmp").read_text().splitlines() if row.startswith("Tcp:")
        )
    return int(values[names.index("RetransSegs")])
