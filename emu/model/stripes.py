"""How one transfer is spread over the NICs of its hosts."""

from __future__ import annotations

from typing import NamedTuple

from topologies.fabric import Fabric, FabricError, Port
from workloads.protocol import Endpoint, Transfer


class Stripe(NamedTuple):
    """A part of a transfer: `bytes` from one NIC to one NIC. `number` tells the stripes of a connection apart."""

    number: int
    src: Port
    dst: Port
    bytes: int


def stripes(fabric: Fabric, transfer: Transfer) -> tuple[Stripe, ...]:
    """The parts of a transfer, one for each NIC that its source sends from.

    NIC i of the source sends to NIC i (modulo their number) of the destination. Bytes are split evenly, the first
    stripes take one byte more where they do not divide; parts of no bytes are left out, except if all are.
    Raises FabricError for a host or NIC that the fabric does not have.
    """
    sources, sinks = _nics(fabric, transfer.src), _nics(fabric, transfer.dst)
    share, rest = divmod(transfer.bytes, len(sources))
    parts = [
        Stripe(number, nic, sinks[number % len(sinks)], share + (number < rest)) for number, nic in enumerate(sources)
    ]
    return tuple(part for part in parts if part.bytes) or (parts[0],)


def _nics(fabric: Fabric, endpoint: Endpoint) -> tuple[Port, ...]:
    nics = fabric.nics(endpoint.host)
    if endpoint.nic is None:
        return nics
    if not 0 <= endpoint.nic < len(nics):
        raise FabricError(f"{endpoint}: host {endpoint.host} has NICs 0 to {len(nics) - 1}")
    return (nics[endpoint.nic],)
