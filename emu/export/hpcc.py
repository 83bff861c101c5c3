"""Flow completion times as the HPCC simulator writes them in fct.txt: one line a flow, in the order of their ends.

    sip dip sport dport size start fct standalone_fct

The addresses are HPCC's, from which scripts take the node's number back by `(ip >> 8) & 0xffff`; times are modelled
nanoseconds. Every flow has the destination port 100, which HPCC's scripts take for ordinary flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Final

from emu.errors import InputError
from emu.export.cells import Row, real, text, whole
from emu.export.hosts import nic_of, nics_of
from emu.export.selection import Selection
from emu.export.stream import write_text

DPORT: Final = 100
FIRST_SPORT: Final = 10_000
_SPORTS: Final = (1 << 16) - FIRST_SPORT
_MOST_NODES: Final = 1 << 16


def write(selection: Selection, stream: BinaryIO) -> None:
    """Write fct.txt. Raises InputError for a run with several fabrics or without flows that were sent as packets."""
    selection.one_fabric("fct.txt")
    flows = [row for row in selection.tables["flows"] if row["how"] == "packets"]
    left_out = Counter(text(row, "how") for row in selection.tables["flows"] if row["how"] != "packets")
    if not flows:
        raise InputError(f"{selection.directory}: no flow of it was sent as packets, so there are no completion times")
    if left_out:
        kinds = " and ".join(f"{count} {how}" for how, count in sorted(left_out.items()))
        selection.notes.append(f"left out: {kinds} transfers, which sent no packets")
    nodes = node_numbers(selection)
    write_text(stream, _lines(sorted(flows, key=_ending), nodes))


def node_numbers(selection: Selection) -> dict[str, int]:
    """HPCC's node number of every NIC (`h5:0`): its place among all, idle ones included, hosts in order.

    So where hosts have one NIC each, h5 is node 5. Raises InputError for more NICs than the format has addresses for.
    """
    nics = nics_of(selection.tables["links"], selection.tables["flows"])
    if len(nics) > _MOST_NODES:
        raise InputError(f"{len(nics)} NICs are more than HPCC's addresses can name ({_MOST_NODES})")
    return {nic: number for number, nic in enumerate(nics)}


def address(node: int) -> int:
    """The IPv4 address that HPCC gives a node: 11.0.0.1 and on, 256 apart."""
    return 0x0B000001 + (node // 256 << 16) + (node % 256 << 8)


def _lines(flows: Iterable[Row], nodes: Mapping[str, int]) -> Iterator[str]:
    used: Counter[tuple[int, int]] = Counter()
    for row in flows:
        pair = nodes[nic_of(text(row, "src"))], nodes[nic_of(text(row, "dst"))]
        sport = FIRST_SPORT + used[pair] % _SPORTS
        used[pair] += 1
        src, dst = (address(node) for node in pair)
        times = (_ns(real(row, column)) for column in ("start_s", "fct_s", "ideal_s"))
        start, fct, alone = times
        yield f"{src:08x} {dst:08x} {sport} {DPORT} {whole(row, 'bytes')} {start} {fct} {max(1, alone)}"


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _ending(row: Row) -> tuple[int, float]:
    return whole(row, "repeat"), real(row, "end_s")
