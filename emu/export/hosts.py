"""The hosts of a run, as far as its tables name them."""

from __future__ import annotations

from collections.abc import Iterable

from emu.export.cells import Row, text


def nics_of(links: Iterable[Row], flows: Iterable[Row] = ()) -> list[str]:
    """The name (`h5:0`) of every NIC, in the order of their hosts' names, numbers in them by their value.

    Only hosts have a port 0, so rows of links tell them from switches, idle ones too. flows: for what has no link.
    """
    ports = {text(row, end) for row in links for end in ("link", "peer")}
    hosts = {node for node, number in map(split, ports) if number == 0}
    named = {nic_of(text(row, end)) for row in flows for end in ("src", "dst")}
    return sorted({port for port in ports if split(port)[0] in hosts} | named, key=natural)


def nic_of(endpoint: str) -> str:
    """The NIC that a flow's `src` or `dst` names: `h5.1` is h5:1, and `h5` is h5:0."""
    host, dot, number = endpoint.rpartition(".")
    return f"{host}:{number}" if dot and number.isdecimal() else f"{endpoint}:0"


def split(port: str) -> tuple[str, int]:
    """Node and number of a port."""
    node, _, number = port.rpartition(":")
    return node, int(number)


def natural(port: str) -> tuple[str, int, int]:
    """Ports by node, h2 before h10, then by number."""
    node, number = split(port)
    prefix = node.rstrip("0123456789")
    return prefix, int(node[len(prefix) :] or -1), number
