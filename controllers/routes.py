"""Which way packets go: one pure function from a fabric and an epoch to the tables of every switch.

The lab installs these tables, the model follows them and the checks read them. Equal arguments give equal tables, in
any process and on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import blake2b

from controllers.circuits import check_epoch
from controllers.epochs import Epoch
from controllers.flow_graph import Fates
from controllers.paths import Forwarder, LitGraph, nic_pairs, number_of
from controllers.tables import Rule, Table, Tables
from controllers.two_level import EXACT, TwoLevel
from topologies.fabric import Fabric, Kind, Port

CIRCUIT = 300
"""Priority of a circuit's rule on its OCS."""
OVERRIDE = 400
"""Priority of a destination's explicit next hops where two-level routing would not deliver."""


def routes(fabric: Fabric, epoch: Epoch, seed: int = 0) -> Tables:
    """The table of every ToR, EPS and OCS while `epoch` is committed.

    `shortest-path` fabrics get explicit next hops: for each NIC address and each switch that can reach it a port on
    a path of least cost (fewest hops, where links cost 1) over electrical links and lit circuits. Among equals the NICs
    of a switch take turns, as D-mod-k routing has it (Zahavi 2010); a hash of (seed, both switches) says which begins.
    `two-level` fabrics get O(k) prefix and suffix rules (see `two_level`), which need no seed, and
    explicit next hops only for destinations that those would not serve. An OCS gets one rule per circuit.
    A destination that a switch cannot reach has no rule there.

    Raises CircuitError if the fabric cannot hold the circuits of the epoch.
    """
    check_epoch(fabric, epoch)
    graph = LitGraph(fabric, epoch)
    circuits = {ocs.name: _circuit_rules(epoch, ocs.name) for ocs in fabric.ocses}
    if fabric.routing == "two-level":
        rules = _two_level(graph, circuits, seed)
    else:
        rules = _next_hops(graph, fabric.all_nics, seed, EXACT)
    return _finished(fabric, {**rules, **circuits})


def path(fabric: Fabric, tables: Tables, src_nic: Port, dst_nic: Port) -> tuple[Port, ...] | None:
    """The way of packets from one NIC to another by these tables, or None if they never arrive.

    Each port of the answer transmits on one directed link of the way: the source NIC first, then the switches' ports,
    those of OCSes included, the last one being what the destination NIC listens to. For many pairs make a
    `controllers.paths.Forwarder` once and ask its `path`.
    """
    return Forwarder(fabric, tables).path(src_nic, dst_nic)


def paths(fabric: Fabric, tables: Tables) -> dict[tuple[Port, Port], tuple[Port, ...]]:
    """The path of every ordered pair of NICs of different hosts that has one."""
    forwarder = Forwarder(fabric, tables)
    found = ((pair, forwarder.path(*pair)) for pair in nic_pairs(fabric))
    return {pair: hops for pair, hops in found if hops is not None}


def reachable_pairs(fabric: Fabric, epoch: Epoch) -> Iterator[tuple[Port, Port]]:
    """Every ordered pair of NICs of different hosts that links and circuits of the epoch connect."""
    graph = LitGraph(fabric, epoch)
    return (pair for pair in nic_pairs(fabric) if graph.reaches(*pair))


def isolated_pairs(fabric: Fabric, epoch: Epoch) -> Iterator[tuple[Port, Port]]:
    """Every ordered pair of NICs of different hosts that no path connects while the epoch holds: no error, but a fact
    to report."""
    graph = LitGraph(fabric, epoch)
    return (pair for pair in nic_pairs(fabric) if not graph.reaches(*pair))


# -- helpers ----------------------------------------------------------------------------------------------------------


def _circuit_rules(epoch: Epoch, ocs: str) -> list[Rule]:
    return [Rule(CIRCUIT, circuit.out_port, in_port=circuit.in_port) for circuit in sorted(epoch.circuits(ocs))]


def _next_hops(graph: LitGraph, nics: Sequence[Port], seed: int, priority: int) -> dict[str, list[Rule]]:
    """Explicit next hops to the given NICs, by switch."""
    rules: dict[str, list[Rule]] = {switch.name: [] for switch in graph.fabric.switches}
    entries = {graph.landing[nic] for nic in graph.fabric.all_nics if nic in graph.landing} if graph.one_way else set()
    for switch, feeders in _by_switch(graph, nics).items():
        hops = [(ports, _offset(ports, seed, at, switch)) for at, ports in graph.towards(switch).items()]
        for place, (nic, feeder) in enumerate(feeders):
            chosen = [feeder, *(ports[(place + offset) % len(ports)] for ports, offset in hops)]
            back = _hairpins(graph, entries, nic, chosen) if graph.one_way else frozenset[Port]()
            made: dict[tuple[int, bool], Rule] = {}  # many switches hold an equal rule: one object serves them all
            address = number_of(graph.fabric.address(nic))
            for port in chosen:
                key = port.number, port in back
                if (rule := made.get(key)) is None:
                    rule = made[key] = Rule(priority, port.number, address, hairpin=key[1])
                rules[port.node].append(rule)
    return rules


def _by_switch(graph: LitGraph, nics: Sequence[Port]) -> dict[str, list[tuple[Port, Port]]]:
    """By switch: the NICs that it feeds, each with the port that does; those that no switch feeds are left out.

    Nothing, or only another host's NIC, shines at those.
    """
    found: dict[str, list[tuple[Port, Port]]] = {}
    for nic in nics:
        feeder = graph.feeder(nic)
        if feeder is not None and graph.fabric.node(feeder.node).kind is not Kind.HOST:
            found.setdefault(feeder.node, []).append((nic, feeder))
    return found


def _hairpins(graph: LitGraph, entries: Set[Port], nic: Port, chosen: Sequence[Port]) -> Set[Port]:
    """Those of the ports that packets to a NIC may have come in by: where other NICs' or the hops' packets land."""
    landed = {graph.landing[port] for port in chosen}
    own = graph.landing.get(nic)
    return {port for port in chosen if port in landed or (port in entries and port != own)}


def _offset(ports: Sequence[Port], seed: int, at: str, switch: str) -> int:
    """Which of several equal ports at one switch the first NIC of another takes; the next one takes the next port.

    So the NICs of a switch are spread evenly. The same for the same arguments wherever it is asked, which hash() is
    not.
    """
    if len(ports) == 1:
        return 0
    return int.from_bytes(blake2b(f"{seed}/{at}/{switch}".encode(), digest_size=8).digest()) % len(ports)


def _two_level(graph: LitGraph, circuits: Mapping[str, list[Rule]], seed: int) -> dict[str, list[Rule]]:
    """Two-level rules, mended by explicit next hops; these alone if what remains could not be mended so."""
    scheme = TwoLevel(graph.fabric)
    rules = scheme.rules()
    if scheme.regular:
        return rules
    forwarder = Forwarder(graph.fabric, _finished(graph.fabric, {**rules, **circuits}))
    entered = {graph.landing[src].node for src in graph.fabric.all_nics if src in graph.landing}
    missed = [nic for nic in graph.fabric.all_nics if not _served(graph, forwarder, entered, nic)]
    if not missed:
        return rules
    hops = _next_hops(graph, missed, seed, OVERRIDE)
    if any(len(hops[switch.name]) < len(missed) for switch in graph.fabric.switches):
        # Where a switch gets no next hop, its prefixes and suffixes would stay in force and might go in circles.
        return _next_hops(graph, graph.fabric.all_nics, seed, EXACT)
    return {switch: [*rules.get(switch, []), *extra] for switch, extra in hops.items()}


def _served(graph: LitGraph, forwarder: Forwarder, entered: Set[str], nic: Port) -> bool:
    """Whether everyone who can reach a NIC is delivered to it, and no switch sends packets in circles or astray."""
    feeder = graph.feeder(nic)
    reaching = graph.distances(feeder.node) if feeder is not None else {}
    fates = Fates(forwarder, nic)
    for switch in graph.fabric.switches:
        end = fates.of_switch(switch.name).end
        if end in ("loop", "wrong") or (end == "dropped" and switch.name in entered and switch.name in reaching):
            return False
    return True


def _finished(fabric: Fabric, rules: Mapping[str, Sequence[Rule]]) -> dict[str, Table]:
    """Tables of all switches in the fabric's order, highest priority first, then by match."""
    names = [switch.name for switch in (*fabric.switches, *fabric.ocses)]
    return {name: tuple(sorted(rules.get(name, ()), key=_precedence)) for name in names}


def _precedence(rule: Rule) -> tuple[int, int, int]:
    return -rule.priority, rule.in_port or 0, rule.destination or 0
