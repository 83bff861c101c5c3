"""What of a phase's time was communication, and what of that no computation hid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from emu.intervals import Interval, common, length, union, without
from emu.records import FlowRecord, PhaseRecord, Trace

_ALL = ""
"""Stands for all hosts: where a computation names none, it keeps every host busy."""


@dataclass(frozen=True, slots=True)
class Communication:
    """Seconds of one phase in which any of its transfers were under way, those inside a host left out.

    A transfer is hidden while one of its two hosts computes, for whatever phase. exposed: those seconds in which some
    transfer was under way that nothing hid; hidden: the others.
    """

    total: float = 0.0
    exposed: float = 0.0

    @property
    def hidden(self) -> float:
        """Seconds of communication that took no time of its own."""
        return self.total - self.exposed


def communication(trace: Trace) -> dict[str, Communication]:
    """By phase, its communication; phases without any are left out."""
    phases: dict[str, list[FlowRecord]] = defaultdict(list)
    for row in trace.flows:
        if row.phase and row.how != "local":
            phases[row.phase].append(row)
    busy = _busy(trace)
    return {phase: _communication(rows, busy) for phase, rows in phases.items()}


def dark_seconds(phase: PhaseRecord, dark: Iterable[Interval]) -> float:
    """For how much of a phase's time some circuit was dark; `dark`: when one was, whatever the order and overlap."""
    return length(common(union([(phase.start, phase.end)]), union(dark)))


def _busy(trace: Trace) -> dict[str, list[Interval]]:
    """By host, when it computed."""
    by_host: dict[str, list[Interval]] = defaultdict(list)
    for row in trace.computations:
        for host in row.hosts or (_ALL,):
            by_host[host].append((row.start, row.end))
    return by_host


def _communication(rows: Iterable[FlowRecord], busy: dict[str, list[Interval]]) -> Communication:
    pairs: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    for row in rows:
        pairs[host_of(row.src), host_of(row.dst)].append((row.start, row.end))
    exposed: list[Interval] = []
    for hosts, flows in pairs.items():
        computing = union(interval for host in (*hosts, _ALL) for interval in busy.get(host, ()))
        exposed += without(union(flows), computing)
    total = union(interval for flows in pairs.values() for interval in flows)
    return Communication(length(total), length(union(exposed)))


def host_of(endpoint: str) -> str:
    """The host of an endpoint as rows name it: `h0` or, with its NIC, `h0.1`."""
    return endpoint.partition(".")[0]
