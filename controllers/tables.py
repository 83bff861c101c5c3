"""Forwarding tables as plain data: what a switch holds, whoever installs it.

The datapath, the model and the checks all read these, so that they cannot disagree on a path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

INNER_PORTS = 0x8000
"""Ports of a packet switch from here on are its own: both ends of its queues (see `controllers.voq`), not wired."""


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """Send what matches to `out_port`. One of the two matches is set.

    priority: the highest that matches wins.
    destination, mask: an IPv4 destination under an arbitrary bit mask, both as integers (packet switches).
    in_port: the port of entry (circuit switches, and packet switches behind queues of their own).
    hairpin: whether packets may leave by the port that they came in by, which an OpenFlow `output` refuses by itself.
        Only one-way circuits need it, where the two directions of a port lead to different places.
    """

    priority: int
    out_port: int
    destination: int | None = None
    mask: int = 0xFFFFFFFF
    in_port: int | None = None
    hairpin: bool = False

    def matches(self, address: int) -> bool:
        """Whether an IPv4 destination matches."""
        return self.destination is not None and address & self.mask == self.destination


Table = tuple[Rule, ...]
Tables = Mapping[str, Table]
"""By switch (ToR, EPS and OCS alike): its rules, highest priority first."""


def address_number(address: str) -> int:
    """An IPv4 address as an integer."""
    return int(ipaddress.IPv4Address(address))


def next_hop(table: Table, address: int) -> int | None:
    """The out_port that a packet switch's table gives for a destination, or None if it would drop it."""
    return next((rule.out_port for rule in table if rule.matches(address)), None)
