"""Small fabrics and workloads with closed forms. One host's NIC carries 1 GB/s, so that 10**9 bytes take a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from topologies.fabric import Fabric, Kind, Port
from workloads.cluster import Cluster, HostSpec
from workloads.protocol import Action, Endpoint, Event, Run, Start, Task, Transfer

GB = 10**9
RATE = 8 * GB
E = TypeVar("E")


def star(hosts: int, *, nics: int | Sequence[int] = 1, delay: float = 0.0) -> Fabric:
    """Hosts on one ToR."""
    fabric = Fabric("star")
    fabric.add_switch("t0", Kind.TOR)
    counts = [nics] * hosts if isinstance(nics, int) else nics
    for number, count in enumerate(counts):
        fabric.add_host(f"h{number}", gpus=count)
        for nic in range(count):
            fabric.connect(Port(f"h{number}", nic), fabric.next_port("t0"), rate=RATE, delay=delay)
    return fabric.finish()


def two_tier(hosts_per_tor: int, uplink_rate: int = RATE) -> Fabric:
    """Two ToRs of `hosts_per_tor` hosts, joined by one spine with one uplink each."""
    fabric = Fabric("two-tier")
    fabric.add_switch("s0", Kind.EPS)
    for tor in range(2):
        fabric.add_switch(f"t{tor}", Kind.TOR)
        for number in range(hosts_per_tor):
            host = fabric.add_host(f"h{tor * hosts_per_tor + number}").name
            fabric.connect(Port(host, 0), fabric.next_port(f"t{tor}"), rate=RATE)
        fabric.connect(fabric.next_port(f"t{tor}"), fabric.next_port("s0"), rate=uplink_rate)
    return fabric.finish()


def on_circuits(tors: int, uplinks: int = 1) -> Fabric:
    """ToRs of one host each on one OCS; uplink j of ToR i is OCS port i * uplinks + j + 1."""
    fabric = Fabric("circuits")
    fabric.add_switch("o0", Kind.OCS)
    for tor in range(tors):
        fabric.add_switch(f"t{tor}", Kind.TOR)
        fabric.add_host(f"h{tor}")
        fabric.connect(Port(f"h{tor}", 0), fabric.next_port(f"t{tor}"), rate=RATE)
        for uplink in range(uplinks):
            fabric.connect(fabric.next_port(f"t{tor}"), Port("o0", tor * uplinks + uplink + 1), rate=RATE)
    return fabric.finish()


def cluster_of(fabric: Fabric) -> Cluster:
    """The hosts of a fabric in its order."""
    return Cluster(tuple(HostSpec(host.name, len(fabric.nics(host.name)), host.gpus) for host in fabric.hosts))


def transfer(name: str, src: int, dst: int, size: int = GB, **more: object) -> Transfer:
    """From NIC 0 of one host to NIC 0 of another, on a connection of its own."""
    given = {"channel": name, **more}
    return Transfer(name, Endpoint(f"h{src}", 0), Endpoint(f"h{dst}", 0), size, **given)


class Script:
    """An orchestrator that runs `tasks` at the start, answers by `react`, and keeps what it heard."""

    def __init__(self, *tasks: Task, react: Callable[[Event, float], Sequence[Action]] | None = None) -> None:
        self.heard: list[tuple[float, Event]] = []
        self._tasks = tasks
        self._react = react

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """Keep the event, and answer it."""
        self.heard.append((now, event))
        started = [Run(task) for task in self._tasks] if isinstance(event, Start) else []
        return [*started, *(self._react(event, now) if self._react else ())]

    def of(self, kind: type[E]) -> list[tuple[float, E]]:
        """What was heard of one kind of event."""
        return [(now, event) for now, event in self.heard if isinstance(event, kind)]
