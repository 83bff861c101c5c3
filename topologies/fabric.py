"""What is wired: a fabric as a graph of typed nodes, numbered ports and links.

A `Fabric` knows nothing of traffic, routes or Mininet. Builders (one module each in this package) fill it; the lab,
the routes and the model all read the same object, so they can never disagree on the wiring.

Units everywhere: rates in bit/s (Ethernet line rate: preamble, gap and FCS count), delays in seconds.
"""

from __future__ import annotations

import copy
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import networkx as nx

MAX_NICS = 8
MAX_NODES = 100_000
"""Bounds what a mistyped parameter can build before it is refused."""
_NAME = re.compile(r"[a-z][a-z0-9]{0,8}\Z")


class FabricError(ValueError):
    """A fabric that cannot be wired as asked; the message says which node, port or parameter and why."""


class Kind(StrEnum):
    """What a node is. A ToR is an electrical packet switch that hosts attach to."""

    HOST = "host"
    TOR = "tor"
    EPS = "eps"
    OCS = "ocs"

    @property
    def electrical(self) -> bool:
        """True for packet switches, which forward by address; an OCS only cross-connects ports."""
        return self in (Kind.TOR, Kind.EPS)


class Port(NamedTuple):
    """One port of a node. Switch ports count from 1 (the OpenFlow number), a host's NICs from 0.

    A port also names the *directed* link that it transmits on: loads, queues and counters are keyed by it.
    """

    node: str
    number: int

    def __str__(self) -> str:
        return f"{self.node}:{self.number}"

    @property
    def interface(self) -> str:
        """The name of this port's network interface in a lab."""
        return f"{self.node}-eth{self.number}"


Hardware = Literal["box", "patch-panel", "host"]
"""What is bought for a node: a box of its own; an OCS that is a patch panel, which only people or robots rewire; or
nothing, because it is software and NICs of the host that it stands in (a switch only): its ports to other boxes are
then that host's NICs, and its links to the host no cables."""


@dataclass(frozen=True, slots=True)
class Node:
    """A host or switch. `pod` and `tier` are the builder's hints for drawing and routing, never required.

    hardware: what is bought for it; see `Hardware`.
    """

    name: str
    kind: Kind
    gpus: int = 0
    pod: int | None = None
    tier: int | None = None
    hardware: Hardware = "box"


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex cable: `rate` bit/s and `delay` seconds in each direction.

    cost: what shortest-path routes count it as; light through OCSs costs what its first link does.
    """

    a: Port
    b: Port
    rate: int
    delay: float = 0.0
    cost: int = 1

    def __str__(self) -> str:
        return f"{self.a}--{self.b}"


Routing = Literal["shortest-path", "two-level"]


@dataclass
class Fabric:
    """A wired fabric.

    name: how reports call it.
    routing: which scheme `controllers.routes` uses. `two-level` needs the addresses and tiers of a fat-tree.
    parameters: what the builder was called with, for the manifest.
    notes: what a reader of results should know of the wiring, one sentence each.
    wiring_assumed: where it is written what is assumed, if the wiring of a published fabric had to be; else "".
    """

    name: str
    routing: Routing = "shortest-path"
    parameters: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    wiring_assumed: str = ""
    _nodes: dict[str, Node] = field(default_factory=dict, repr=False)
    _links: dict[Port, Link] = field(default_factory=dict, repr=False)
    _addresses: dict[Port, str] = field(default_factory=dict, repr=False)
    _owners: dict[str, Port] = field(default_factory=dict, repr=False)
    _wired: dict[str, list[Port]] = field(default_factory=dict, repr=False)
    """By node: its wired ports, so that asking for them does not search the whole fabric."""
    _lowest: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """By node: below it all ports are wired, so that the next free one is found without counting from the first."""

    # -- building ------------------------------------------------------------

    def add_host(self, name: str, *, gpus: int = 1, pod: int | None = None) -> Node:
        """Add a host; its NICs come into being as `connect` wires ports 0..7 of it."""
        if gpus < 1:
            raise FabricError(f"host {name}: gpus must be at least 1, not {gpus}")
        return self._add(Node(name, Kind.HOST, gpus=gpus, pod=pod, tier=0))

    def add_switch(
        self, name: str, kind: Kind, *, pod: int | None = None, tier: int | None = None, hardware: Hardware = "box"
    ) -> Node:
        """Add a ToR, an EPS or an OCS. Raises FabricError for hardware that its kind cannot be."""
        if kind is Kind.HOST:
            raise FabricError(f"{name}: a switch cannot be of kind host")
        if hardware == ("host" if kind is Kind.OCS else "patch-panel"):
            raise FabricError(f"{name}: a switch of kind {kind} cannot be a {hardware}")
        return self._add(Node(name, kind, pod=pod, tier=tier, hardware=hardware))

    def connect(self, a: Port, b: Port, *, rate: int, delay: float = 0.0, cost: int = 1) -> Link:
        """Wire two free ports. Raises FabricError for an unknown node, a port in use, or an impossible rate or cost."""
        for port in (a, b):
            self._check_free(port)
        if a.node == b.node:
            raise FabricError(f"{a} and {b}: a cable needs two nodes")
        if rate <= 0:
            raise FabricError(f"{a}--{b}: rate must be positive, not {rate}")
        if delay < 0:
            raise FabricError(f"{a}--{b}: delay must not be negative, not {delay}")
        if cost < 1:
            raise FabricError(f"{a}--{b}: cost must be at least 1, not {cost}")
        link = Link(a, b, rate, delay, cost)
        self._links[a] = self._links[b] = link
        for port in (a, b):
            self._wired[port.node].append(port)
        return link

    def next_port(self, node: str) -> Port:
        """The lowest port of `node` that is not wired yet (hosts from 0, switches from 1)."""
        number = self._lowest.get(node, 0 if self.node(node).kind is Kind.HOST else 1)
        while Port(node, number) in self._links:
            number += 1
        self._lowest[node] = number  # a wired port stays wired, so the next search goes on from here
        return Port(node, number)

    def set_address(self, nic: Port, address: str) -> None:
        """Give a NIC its IPv4 address, inside 10.0.0.0/8. Raises FabricError if it is taken or not one."""
        if self.node(nic.node).kind is not Kind.HOST:
            raise FabricError(f"{nic}: only hosts have addresses")
        try:
            parsed = ipaddress.IPv4Address(address)
        except ValueError as error:
            raise FabricError(f"{nic}: {error}") from None
        if parsed not in ipaddress.IPv4Network("10.0.0.0/8"):
            raise FabricError(f"{nic}: {address} is outside 10.0.0.0/8")
        if self._owners.get(address, nic) != nic:
            raise FabricError(f"{nic}: address {address} belongs to {self._owners[address]}")
        self._addresses[nic] = address
        self._owners[address] = nic

    def finish(self) -> Fabric:
        """Give addresses to the NICs that have none, check every invariant and return self.

        Raises FabricError when a host has no NIC, or NICs that are not numbered 0..n-1.
        """
        taken = set(self._owners)
        free = (str(a) for i in range(1, 1 << 20) if str(a := ipaddress.IPv4Address((10 << 24) + i)) not in taken)
        for host in self.hosts:
            numbers = [nic.number for nic in self.ports(host.name)]
            if not numbers or numbers != list(range(len(numbers))):
                raise FabricError(f"host {host.name}: NICs must be wired as 0..n-1, not {numbers}")
            for nic in self.nics(host.name):
                if nic not in self._addresses:
                    self.set_address(nic, next(free))
        if not self.hosts:
            raise FabricError(f"fabric {self.name}: it has no hosts")
        return self

    def with_rates(self, factor: float) -> Fabric:
        """The same fabric with the rate of every link multiplied by `factor`, rounded to bit/s."""
        links = {port: replace(link, rate=max(1, round(link.rate * factor))) for port, link in self._links.items()}
        return replace(copy.deepcopy(self), _links=links)

    # -- reading ------------------------------------------------------------

    def node(self, name: str) -> Node:
        """The node of that name; raises FabricError if there is none."""
        try:
            return self._nodes[name]
        except KeyError:
            raise FabricError(f"fabric {self.name} has no node {name!r}") from None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in the order in which they were added."""
        return tuple(self._nodes.values())

    def of_kind(self, *kinds: Kind) -> tuple[Node, ...]:
        """The nodes of the given kinds, in order."""
        return tuple(node for node in self._nodes.values() if node.kind in kinds)

    @property
    def hosts(self) -> tuple[Node, ...]:
        """All hosts; ranks fill them in this order."""
        return self.of_kind(Kind.HOST)

    @property
    def switches(self) -> tuple[Node, ...]:
        """All electrical packet switches, ToRs included."""
        return self.of_kind(Kind.TOR, Kind.EPS)

    @property
    def ocses(self) -> tuple[Node, ...]:
        """All optical circuit switches."""
        return self.of_kind(Kind.OCS)

    @property
    def links(self) -> tuple[Link, ...]:
        """Every cable once, in the order in which they were wired."""
        return tuple(dict.fromkeys(self._links.values()))

    def ports(self, node: str) -> tuple[Port, ...]:
        """The wired ports of a node, by number."""
        self.node(node)
        return tuple(sorted(self._wired[node]))

    def link(self, port: Port) -> Link:
        """The cable in that port; raises FabricError if the port is not wired."""
        try:
            return self._links[port]
        except KeyError:
            raise FabricError(f"fabric {self.name}: port {port} is not wired") from None

    def peer(self, port: Port) -> Port:
        """The port at the other end of the cable in `port`."""
        link = self.link(port)
        return link.b if link.a == port else link.a

    def nics(self, host: str) -> tuple[Port, ...]:
        """The NICs of a host, by number (1 to 8 of them)."""
        return self.ports(host)

    def address(self, nic: Port) -> str:
        """The IPv4 address of a NIC."""
        return self._addresses[nic]

    def nic_at(self, address: str) -> Port:
        """The NIC that has this address."""
        return self._owners[address]

    @property
    def all_nics(self) -> tuple[Port, ...]:
        """Every NIC of every host, hosts in order."""
        return tuple(nic for host in self.hosts for nic in self.nics(host.name))

    def transmitters(self) -> Iterator[Port]:
        """Every port that transmits from an electrical device (NICs and packet switches), so: every shaped one."""
        for port in self._links:
            if self._nodes[port.node].kind is not Kind.OCS:
                yield port

    def graph(self) -> nx.MultiGraph:
        """The fabric as a networkx graph: nodes carry `node`, edges carry `link`. A fresh copy at each call."""
        import networkx as nx  # noqa: PLC0415 - takes a third of a second, and most programs draw no graph

        graph = nx.MultiGraph(name=self.name)
        for node in self._nodes.values():
            graph.add_node(node.name, node=node)
        for link in self.links:
            graph.add_edge(link.a.node, link.b.node, link=link)
        return graph

    # -- helpers ------------------------------------------------------------

    def _add(self, node: Node) -> Node:
        if not _NAME.match(node.name):
            raise FabricError(f"{node.name!r}: names are a lower-case letter and up to 8 letters or digits")
        if node.name in self._nodes:
            raise FabricError(f"{node.name}: there is a node of this name already")
        if len(self._nodes) >= MAX_NODES:
            raise FabricError(f"it has more than {MAX_NODES} nodes")
        self._nodes[node.name] = node
        self._wired[node.name] = []
        return node

    def _check_free(self, port: Port) -> None:
        host = self.node(port.node).kind is Kind.HOST
        low, high = (0, MAX_NICS - 1) if host else (1, 65279)
        if not low <= port.number <= high:
            what = f"a host has 1 to {MAX_NICS} NICs" if host else "a switch has ports 1 to 65279"
            raise FabricError(f"{port}: no such port; {what}")
        if port in self._links:
            raise FabricError(f"{port} is wired already ({self._links[port]})")
