"""Which hosts of a lab reach which: one TCP connection between each two, opened from one process.

Mininet's `pingall` runs a ping program for each pair, one after the other, and waits ten seconds for each that does not
answer. Here all pairs are tried at once, so that those without a path cost one wait together.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from emu.lab.namespaces import NetworkNamespace
from topologies.fabric import Fabric

_PORT = 4790
_MOST = 1000
"""Sockets that try at once."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Probe:
    """Hosts that try each other. patience: wall seconds for an answer."""

    fabric: Fabric
    namespaces: Mapping[str, NetworkNamespace]
    hosts: Sequence[str]
    patience: float

    def run(self, say: Callable[[str], object], *, full: bool = False) -> float:
        """Try every pair and tell it as Mininet does, row by row; the share that was not reached.

        full: one line for each pair, with the time that its connection took.
        """
        say("*** TCP: testing reachability\n")
        reached = pairs = 0
        with self._listening():
            for hosts in self._batches(full):
                found = self._try(hosts)
                for host in hosts:
                    others = [other for other in self.hosts if other != host]
                    times = {other: found[host, other] for other in others if (host, other) in found}
                    say(_lines(host, others, times) if full else _row(host, others, times))
                    reached, pairs = reached + len(times), pairs + len(others)
        dropped = 1 - reached / pairs if pairs else 0.0
        say(f"*** Results: {dropped:.0%} dropped ({reached}/{pairs} received)\n")
        return dropped

    def reached(self) -> bool:
        """Whether the first host reaches all others."""
        with self._listening():
            return len(self._try(self.hosts[:1])) == len(self.hosts) - 1

    def _batches(self, alone: bool) -> Iterator[Sequence[str]]:
        """The hosts in groups that may try at once: as few rows as sockets allow, or each alone where time counts."""
        size = 1 if alone else max(1, _MOST // len(self.hosts))
        for begin in range(0, len(self.hosts), size):
            yield self.hosts[begin : begin + size]

    def _try(self, hosts: Sequence[str]) -> dict[Pair, float]:
        """The pairs from `hosts` to all others that connect, and after how many wall seconds."""
        found: dict[Pair, float] = {}
        with ExitStack() as stack:
            poller, trying = select.poll(), dict[int, tuple[Pair, socket.socket]]()
            began = time.monotonic()
            for pair, connection in self._connections(hosts, stack):
                poller.register(connection, select.POLLOUT)
                trying[connection.fileno()] = pair, connection
            while trying and (left := began + self.patience - time.monotonic()) > 0:
                for descriptor, _ in poller.poll(left * 1e3):
                    pair, connection = trying.pop(descriptor)
                    poller.unregister(descriptor)
                    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                        found[pair] = time.monotonic() - began
        return found

    def _connections(self, hosts: Sequence[str], stack: ExitStack) -> Iterator[tuple[Pair, socket.socket]]:
        """A socket that connects, for each pair; closed by the stack."""
        for host in hosts:
            with self.namespaces[host].entered():
                for other in self.hosts:
                    if other != host:
                        connection = stack.enter_context(socket.socket())
                        connection.setblocking(False)
                        if connection.connect_ex((self._address(other), _PORT)) in (0, errno.EINPROGRESS):
                            yield (host, other), connection  # else the host knows no way at all

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """A socket on every host that lets others connect; nothing is read from it."""
        with ExitStack() as stack:
            for host in self.hosts:
                with self.namespaces[host].entered():
                    listener = stack.enter_context(socket.socket())
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listener.bind(("", _PORT))
                    listener.listen(2 * len(self.hosts))
            yield

    def _address(self, host: str) -> str:
        return self.fabric.address(self.fabric.nics(host)[0])


def _row(host: str, others: Sequence[str], times: Mapping[str, float]) -> str:
    return f"{host} -> {' '.join(other if other in times else 'X' for other in others)}\n"


def _lines(host: str, others: Sequence[str], times: Mapping[str, float]) -> str:
    took = {other: f"1/1, {times[other] * 1e3:.3f} ms" if other in times else "0/1" for other in others}
    return "".join(f"{host}->{other}: {took[other]}\n" for other in others)
