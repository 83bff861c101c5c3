"""A `Fabric` as a Mininet network.

Mininet stays the library, so that a user finds hosts, switches and a CLI that they know. Subclassed is what it does one
process at a time, or carries on after a failure: here interfaces are made through netlink in batches, all bridges and
ports in one OVSDB transaction, and whatever fails is an error. `LabNet` also keeps Mininet from changing machine-wide
settings, as it otherwise does when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyroute2 import IPRoute

from emu.lab.mininet_package import ensure_mininet
from emu.lab.namespaces import NetworkNamespace
from emu.lab.openvswitch import run
from topologies.fabric import Fabric, Kind, Port

ensure_mininet()

from mininet.link import Intf, Link  # noqa: E402 - Mininet must have been found first
from mininet.log import setLogLevel  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import Host, OVSSwitch, RemoteController  # noqa: E402
from mininet.topo import Topo  # noqa: E402

CONTROLLER = ("127.0.0.1", 6653)
_OPENFLOW = "OpenFlow14"


def datapath_id(fabric: Fabric, switch: str) -> int:
    """The OpenFlow datapath id of a switch: its place among all switches of the fabric, from 1."""
    names = [node.name for node in fabric.nodes if node.kind is not Kind.HOST]
    return names.index(switch) + 1


def mac_address(fabric: Fabric, nic: Port) -> str:
    """A locally administered MAC address made from the NIC's IPv4 address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in fabric.address(nic).split("."))


class FabricTopo(Topo):  # type: ignore[misc]  # Mininet is untyped
    """Mininet's view of a fabric: the same names and port numbers."""

    def build(self, fabric: Fabric) -> None:
        """Add every node and cable (called by Topo's constructor)."""
        for node in fabric.nodes:
            if node.kind is Kind.HOST:
                self.addHost(node.name)
            else:
                self.addSwitch(node.name, dpid=f"{datapath_id(fabric, node.name):016x}")
        for link in fabric.links:
            self.addLink(link.a.node, link.b.node, port1=link.a.number, port2=link.b.number)


class _QuietIntf(Intf):  # type: ignore[misc]
    """An interface that is made and configured in LabNet's batches, not by a command of its own."""

    def config(self, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """Nothing to do here."""
        return {}

    def updateIP(self) -> str | None:
        """The address that LabNet knows; None at a switch. Mininet's name."""
        address: str | None = self.ip
        return address


class _BatchLink(Link):  # type: ignore[misc]
    """A link whose veth pair LabNet makes together with all others."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        kwargs["intf"] = _QuietIntf
        super().__init__(*args, **kwargs)

    @classmethod
    def makeIntfPair(cls, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Mininet's name
        """Put off to LabNet."""


class LabSwitch(OVSSwitch):  # type: ignore[misc]
    """An Open vSwitch bridge that forwards nothing it was not told to: fail-mode secure, OpenFlow 1.4."""

    def __init__(self, name: str, **params: Any) -> None:  # noqa: ANN401
        params.update(failMode="secure", protocols=_OPENFLOW)
        super().__init__(name, **params)

    def start(self, controllers: Iterable[Any]) -> None:
        """Only collect this bridge's part of the transaction; `batchStartup` sends it."""
        targets = [f"tcp:{c.IP()}:{c.port}" for c in controllers]
        kind = ["--", "set", "Bridge", self.name, "datapath_type=netdev"] if self.datapath == "user" else []
        self.commands = [
            *("--", "add-br", self.name),
            *kind,
            *("--", "set", "Bridge", self.name, f"other_config:datapath-id={self.dpid}"),
            *(f"fail_mode={self.failMode}", f"protocols={self.protocols}", "other_config:disable-in-band=true"),
            *(part for intf in self.intfList() if self.ports[intf] for part in self._port(intf)),
            *("--", "set-controller", self.name, *targets),
        ]

    def _port(self, intf: Any) -> tuple[str, ...]:  # noqa: ANN401
        number = f"ofport_request={self.ports[intf]}"
        return ("--", "add-port", self.name, intf.name, "--", "set", "Interface", intf.name, number)

    @classmethod
    def batchStartup(cls, switches: Iterable[Any], run: Any = run) -> list[Any]:  # noqa: ANN401
        """Make all bridges in one OVSDB transaction. Raises LabError if it fails."""
        switches = list(switches)
        run("ovs-vsctl", *(part for switch in switches for part in switch.commands))
        return switches


class LabNet(Mininet):  # type: ignore[misc]
    """A fabric in Mininet: hosts in own namespaces, switches as bridges of the lab's Open vSwitch."""

    def __init__(self, fabric: Fabric, *, datapath: str, mtu: int, controller: bool = True) -> None:
        """Build hosts, bridges' shells and cables; `start` then makes the bridges.

        datapath: `user` or `kernel`. mtu: IP packet size on every cable.
        """
        setLogLevel("critical")
        Mininet.inited = True  # its init() would raise machine-wide limits (fs.file-max, net.core.*, kernel.*)
        self.fabric, self.mtu = fabric, mtu
        self.namespaces: dict[str, NetworkNamespace] = {}
        super().__init__(
            topo=FabricTopo(fabric),
            switch=lambda name, **params: LabSwitch(name, datapath=datapath, **params),
            host=Host,
            link=_BatchLink,
            controller=None,
            build=False,
        )
        if controller:
            ip, port = CONTROLLER
            self.addController("c0", controller=RemoteController, ip=ip, port=port)
        self.build()

    def buildFromTopo(self, topo: Any = None) -> None:  # noqa: ANN401
        """Let Mininet make the nodes, then make every veth pair in one batch."""
        super().buildFromTopo(topo)
        for host in self.hosts:
            self.namespaces[host.name] = NetworkNamespace(host.pid)
        with IPRoute() as netlink:
            for link in self.fabric.links:
                self._wire(netlink, link.a, link.b)

    def configHosts(self) -> None:
        """Only tell Mininet the addresses of the NICs, which emu.lab.hosts sets through netlink."""
        for nic in self.fabric.all_nics:
            intf = self.get(nic.node).nameToIntf[nic.interface]
            intf.ip, intf.prefixLen, intf.mac = self.fabric.address(nic), 8, mac_address(self.fabric, nic)

    def start(self) -> None:
        """Make the bridges and bring up every switch port."""
        super().start()
        with IPRoute() as netlink:
            for index in self.port_indexes(netlink).values():
                netlink.link("set", index=index, state="up")

    def port_indexes(self, netlink: IPRoute) -> dict[Port, int]:
        """The interface index of every switch port, read in the lab's own namespace."""
        ports = {port.interface: port for node in self.topo.switches() for port in self.fabric.ports(node)}
        indexes = ((link.get_attr("IFLA_IFNAME"), link["index"]) for link in netlink.get_links())
        return {ports[name]: index for name, index in indexes if name in ports}

    def _wire(self, netlink: IPRoute, a: Port, b: Port) -> None:
        here, there = (self._end(port) for port in (a, b))
        netlink.link("add", kind="veth", peer=there, **here)

    def _end(self, port: Port) -> dict[str, Any]:
        end: dict[str, Any] = {"ifname": port.interface, "mtu": self.mtu}
        if self.fabric.node(port.node).kind is Kind.HOST:
            end["address"] = mac_address(self.fabric, port)
            end["net_ns_fd"] = self.namespaces[port.node].fd
        return end
