"""Reading and setting every transmitter of a lab, whichever namespace it sits in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyroute2 import IPRoute

from emu.lab import shaping
from emu.lab.network import LabNet
from emu.lab.openvswitch import run
from emu.lab.shaping import Shape
from topologies.fabric import Fabric, Kind, Port

_DROPS = re.compile(r"port\s+\"?(\d+)\"?:.*?tx pkts=\d+, bytes=\d+, drop=(\d+), errs=(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PortCount:
    """What a port has transmitted since it was made, and what was lost on the way out.

    bytes, packets: as the kernel counts frames. queue_drops: at its shaper. configured: the shaper's rate in bit/s, or
    None for a port without one.
    """

    bytes: int
    packets: int
    queue_drops: int = 0
    configured: int | None = None


class Transmitters:
    """All ports of a lab, with one netlink socket for each namespace."""

    def __init__(self, net: LabNet) -> None:
        """Open the sockets; `close` them afterwards."""
        self._net, self._fabric = net, net.fabric
        self._here = IPRoute()
        self._hosts: dict[str, IPRoute] = {}
        for host in self._fabric.hosts:
            with net.namespaces[host.name].entered():
                self._hosts[host.name] = IPRoute()
        self._indexes = self._find_indexes()
        self._delays: Mapping[Port, float] = {}

    def shape_all(self, rates: dict[Port, int], queue: int, delays: Mapping[Port, float] | None = None) -> None:
        """Shape every NIC and every packet switch port to its rate (bit/s), `queue` bytes behind each.

        delays: wall seconds by which a port delays what it sends.
        """
        self._delays = delays or {}
        for port, rate in rates.items():
            netlink, index = self._at(port)
            shape = Shape(rate, queue, self._delays.get(port, 0.0))
            shaping.reshape(netlink, index, port.interface, shape, self._net.mtu)

    def clear_all(self) -> None:
        """Take every shaper away."""
        self._delays = {}
        for port in self._fabric.transmitters():
            shaping.clear(*self._at(port))

    def read(self) -> dict[Port, PortCount]:
        """The counters of every port that transmits, OCS ports included."""
        return {port: self._count(port) for port in self._indexes}

    def close(self) -> None:
        """Close the sockets."""
        for netlink in (self._here, *self._hosts.values()):
            netlink.close()

    def index(self, port: Port) -> int:
        """The interface index of a port in its namespace."""
        return self._indexes[port]

    @contextmanager
    def namespace_of(self, port: Port) -> Iterator[None]:
        """Be in the namespace in which a port's interface is."""
        if port.node in self._hosts:
            with self._net.namespaces[port.node].entered():
                yield
        else:
            yield

    def _at(self, port: Port) -> tuple[IPRoute, int]:
        return self._hosts.get(port.node, self._here), self._indexes[port]

    def _count(self, port: Port) -> PortCount:
        netlink, index = self._at(port)
        stats = netlink.get_links(index)[0].get_attr("IFLA_STATS64")
        state = shaping.read(netlink, index, delayed=port in self._delays)
        if state is None:
            return PortCount(stats["tx_bytes"], stats["tx_packets"])
        return PortCount(stats["tx_bytes"], stats["tx_packets"], state.drops, state.rate)

    def _find_indexes(self) -> dict[Port, int]:
        found: dict[Port, int] = {}
        for node in self._fabric.nodes:
            netlink = self._hosts.get(node.name, self._here)
            for port in self._fabric.ports(node.name):
                found[port] = netlink.link_lookup(ifname=port.interface)[0]
        return found


def emulated_rates(fabric: Fabric, beta: float) -> dict[Port, int]:
    """The rate in bit/s to which each transmitter is shaped: its link's divided by beta."""
    return {port: max(1, round(fabric.link(port).rate / beta)) for port in fabric.transmitters()}


def switch_drops(fabric: Fabric) -> dict[Port, int]:
    """Packets that Open vSwitch itself lost when it sent on a port (its AF_PACKET socket was full, say)."""
    lost: dict[Port, int] = {}
    for node in fabric.nodes:
        if node.kind is Kind.HOST:
            continue
        for number, dropped, errors in _DROPS.findall(run("ovs-ofctl", "-O", "OpenFlow14", "dump-ports", node.name)):
            lost[Port(node.name, int(number))] = int(dropped) + int(errors)
    return lost


def dark_drops(fabric: Fabric, counts: Mapping[Port, PortCount]) -> int:
    """Packets that entered an OCS and never left it since the lab began: they met a port without a circuit.

    By the counters of the cables' two ends. Open vSwitch's own counters (of its tables and rules) run up to half a
    second behind, and book what passed meanwhile by the rules that hold at the end of it.
    """
    ports = [port for ocs in fabric.ocses for port in fabric.ports(ocs.name)]
    return sum(counts[fabric.peer(port)].packets - counts[port].packets for port in ports)
