"""How one transfer is spread over the NICs of its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from controllers.loads import Load
from topologies.fabric import Fabric, FabricError, Port
from workloads.protocol import Endpoint, Transfer


class Stripe(NamedTuple):
    """A part of a transfer: `bytes` from one NIC to one NIC."""

    src: Port
    dst: Port
    bytes: int


def stripes(fabric: Fabric, transfer: Transfer) -> tuple[Stripe, ...]:
    """The parts of a transfer, no two of which join the same two NICs.

    An end that names a NIC uses that one, else all NICs of its host: NIC i sends to NIC i, and the side that has fewer
    goes around. Bytes are split evenly, the first stripes take one byte more where they do not divide; parts of no
    bytes are left out, except if all are.
    Raises FabricError for a host or NIC that the fabric does not have.
    """
    sources, sinks = _nics(fabric, transfer.src), _nics(fabric, transfer.dst)
    count = max(len(sources), len(sinks))
    share, rest = divmod(transfer.bytes, count)
    parts = [
        Stripe(sources[number % len(sources)], sinks[number % len(sinks)], share + (number < rest))
        for number in range(count)
    ]
    return tuple(part for part in parts if part.bytes) or (parts[0],)


def loads(fabric: Fabric, outstanding: Iterable[tuple[Transfer, int]]) -> Iterator[Load]:
    """What transfers with so many bytes to go still have to move between NICs, spread evenly over their stripes."""
    for transfer, left in outstanding:
        if left > 0 and transfer.src.host != transfer.dst.host:
            for part in stripes(fabric, replace(transfer, bytes=left)):
                yield Load(part.src, part.dst, part.bytes)


def _nics(fabric: Fabric, endpoint: Endpoint) -> tuple[Port, ...]:
    nics = fabric.nics(endpoint.host)
    if endpoint.nic is None:
        return nics
    if not 0 <= endpoint.nic < len(nics):
        raise FabricError(f"{endpoint}: host {endpoint.host} has NICs 0 to {len(nics) - 1}")
    return (nics[endpoint.nic],)
