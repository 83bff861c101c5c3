"""What holds on every fabric, whoever built it."""

from __future__ import annotations

from collections import Counter, defaultdict

import networkx as nx

from controllers.epochs import Epoch
from controllers.paths import Forwarder
from controllers.routes import routes
from topologies.fabric import Fabric, Kind, Port


def nic_rates(fabric: Fabric) -> set[int]:
    """The rates of all NICs' links."""
    return {fabric.link(nic).rate for nic in fabric.all_nics}


def tier_rates(fabric: Fabric) -> dict[tuple[str, str], set[int]]:
    """By the kinds at the two ends of a link, lower tier first: the rates of such links."""
    rates: dict[tuple[str, str], set[int]] = defaultdict(set)
    for link in fabric.links:
        ends = sorted((fabric.node(port.node) for port in (link.a, link.b)), key=lambda node: node.tier or 0)
        rates[ends[0].kind, ends[1].kind].add(link.rate)
    return dict(rates)


def bisection(fabric: Fabric) -> float:
    """The maximum flow from the first half of the hosts to the second, bit/s; OCSs left out."""
    graph = nx.DiGraph()
    for link in fabric.links:
        if all(fabric.node(port.node).kind is not Kind.OCS for port in (link.a, link.b)):
            for a, b in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
                known = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
                graph.add_edge(a, b, capacity=known + link.rate)
    hosts = [host.name for host in fabric.hosts]
    for place, host in enumerate(hosts):
        graph.add_edge(*(("from", host) if place < len(hosts) // 2 else (host, "to")))
    return float(nx.maximum_flow_value(graph, "from", "to"))


def loads_of_shifts(fabric: Fabric, shift: int) -> Counter[Port]:
    """How many NICs' packets cross each port if each NIC sends to the one of the same number `shift` hosts on."""
    forwarder = Forwarder(fabric, routes(fabric, Epoch()))
    hosts, load = fabric.hosts, Counter[Port]()
    for place, host in enumerate(hosts):
        for src, dst in zip(fabric.nics(host.name), fabric.nics(hosts[(place + shift) % len(hosts)].name), strict=True):
            found = forwarder.path(src, dst)
            assert found is not None, (src, dst)
            load.update(found)
    return load
