"""Which parts a fabric is made of, counted port by port; only wired ports count, as in MixNet (SIGCOMM 2025)."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple, get_args

from topologies.fabric import Fabric, Kind, Link, Node, Port

PartKind = Literal["nic", "transceiver", "eps_port", "ocs_port", "patch_port"]
"""A NIC's port; the optics at an electrical end of a cable; a port of a packet switch, circuit switch, patch panel."""

PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)


class Part(NamedTuple):
    """What is bought: its kind, and the rate of the link that it belongs to (bit/s)."""

    kind: PartKind
    rate: int


def count_parts(fabric: Fabric) -> dict[Part, int]:
    """How many of each part a fabric has, in the order of the kinds and by rate.

    Each end of a cable is a port of its node, and a transceiver unless the node is an OCS, where light only passes.
    What stands inside a host (`hardware="host"`) has no ports of its own: those to other boxes are the host's NICs, and
    its links to the host's other parts are no cables and count nothing.
    """
    parts: Counter[Part] = Counter()
    for link in fabric.links:
        if not _inside_host(fabric, link):
            parts.update(part for port in (link.a, link.b) for part in _at(fabric, port, link.rate))
    return dict(sorted(parts.items(), key=lambda item: (PART_KINDS.index(item[0].kind), item[0].rate)))


def _inside_host(fabric: Fabric, link: Link) -> bool:
    return all(_in_host(fabric.node(port.node)) for port in (link.a, link.b))


def _in_host(node: Node) -> bool:
    return node.kind is Kind.HOST or node.hardware == "host"


def _at(fabric: Fabric, port: Port, rate: int) -> tuple[Part, ...]:
    """The parts at one end of a cable."""
    node = fabric.node(port.node)
    if node.kind is Kind.OCS:
        return (Part("patch_port" if node.hardware == "patch-panel" else "ocs_port", rate),)
    return Part("nic" if _in_host(node) else "eps_port", rate), Part("transceiver", rate)
