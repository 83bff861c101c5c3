"""Payload that crosses a lab between its pods, from port counters that are quick enough to be read in the midst of it.

One read of /proc/net/dev has every switch port of the lab and takes a fraction of a millisecond; so phases are told
apart while others are in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from emu.crossing import Crossing, circuit_ports, core_ports
from emu.wire import ETHERNET_HEADER, IP_TCP_HEADERS, TCP_TIMESTAMPS
from topologies.fabric import Fabric, Port

HEADERS: Final = ETHERNET_HEADER + IP_TCP_HEADERS + TCP_TIMESTAMPS
"""Bytes of a counted frame that are no payload; bare acknowledgements and probe frames have nothing else."""

_TX_BYTES, _TX_PACKETS = 8, 9
"""Columns of /proc/net/dev."""


class CrossingMeter:
    """Reads what left circuits and what went up to the core, in modelled bytes."""

    def __init__(self, fabric: Fabric, sigma: float) -> None:
        """`sigma`: modelled bytes for each byte in the lab."""
        self._sigma = sigma
        self._circuits = _interfaces(circuit_ports(fabric))
        self._core = _interfaces(core_ports(fabric))

    def read(self, text: str | None = None) -> Crossing:
        """What crossed since the lab began. text: of /proc/net/dev, if not that of the calling thread's namespace."""
        counts = dict(_payloads(Path("/proc/thread-self/net/dev").read_text() if text is None else text))
        return Crossing(self._sum(counts, self._circuits), self._sum(counts, self._core))

    def _sum(self, counts: dict[str, int], names: frozenset[str]) -> int:
        return round(sum(counts[name] for name in names) * self._sigma)


def _interfaces(ports: Iterable[Port]) -> frozenset[str]:
    return frozenset(port.interface for port in ports)


def _payloads(text: str) -> Iterator[tuple[str, int]]:
    """By interface, the payload that it has sent."""
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        columns = numbers.split()
        yield name.strip(), int(columns[_TX_BYTES]) - HEADERS * int(columns[_TX_PACKETS])
