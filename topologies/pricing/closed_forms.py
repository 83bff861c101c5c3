"""Costs by formula, for fabrics that nothing builds yet."""

from __future__ import annotations

from topologies.pricing.parts import Part
from topologies.pricing.table import PriceTable


def mixnet(nics: int, rate: int, table: PriceTable, *, electrical: int = 2, optical: int = 6) -> float:
    """Dollars of MixNet's fabric (SIGCOMM 2025) for so many NICs of `rate` bit/s.

    Of each host's NICs, `electrical` go to a non-blocking three-tier fat-tree (a NIC, 5 switch ports and 6 transceivers
    each) and `optical` to a regional OCS (a NIC, a transceiver and an OCS port each); 2 and 6 of 8 as in the paper.

    Raises PriceError if the table lacks the rate, ValueError if it lacks a part.
    """
    nic, port, optics, circuit = (
        _of(table, Part(kind, rate)) for kind in ("nic", "eps_port", "transceiver", "ocs_port")
    )
    share = electrical / (electrical + optical)
    return nics * (share * (nic + 5 * port + 6 * optics) + (1 - share) * (nic + optics + circuit))


def _of(table: PriceTable, part: Part) -> float:
    value = table.of("dollars", part)
    if value is None:
        raise ValueError(f"table {table.name} has no {part.kind}")
    return value
