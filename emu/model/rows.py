"""What a collective that was carried out whole moved, as few rows: one for each two hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emu.model.maxmin import Ints
from emu.model.motion import Program
from emu.records import FlowRecord
from topologies.fabric import Fabric
from workloads.protocol import Collective

MOST_ROWS = 4096
"""Of one collective. If more pairs of hosts exchange messages, those of two pods share a row, named by first hosts."""


class HostRows:
    """Makes the rows of programs on one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._names = [host.name for host in fabric.hosts]
        place = {name: number for number, name in enumerate(self._names)}
        self._host_of: Ints = np.array([place[nic.node] for nic in fabric.all_nics], dtype=np.int64)
        first: dict[int | None, int] = {}
        self._first_of_pod: Ints = np.array(
            [first.setdefault(host.pod, number) for number, host in enumerate(fabric.hosts)], dtype=np.int64
        )

    def rows(self, collective: Collective, program: Program, now: float) -> Sequence[FlowRecord]:
        """The rows of a collective that ended now, from its first message's start to its last one's end."""
        src, dst = self._host_of[program.src], self._host_of[program.dst]
        bytes_of = program.shape.totals()
        out = list(self._grouped(collective, src, dst, bytes_of, program.start, now))
        if len(out) > MOST_ROWS:
            src, dst = self._first_of_pod[src], np.where(src == dst, self._first_of_pod[src], self._first_of_pod[dst])
            out = list(self._grouped(collective, src, dst, bytes_of, program.start, now))
        return out

    def _grouped(
        self, collective: Collective, src: Ints, dst: Ints, sizes: Ints, start: float, end: float
    ) -> Iterator[FlowRecord]:
        pairs, group = np.unique(src * len(self._names) + dst, return_inverse=True)
        totals = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(totals, group, sizes)
        for pair, size in zip(pairs.tolist(), totals.tolist(), strict=True):
            here, there = (self._names[number] for number in divmod(pair, len(self._names)))
            yield FlowRecord(
                id=f"{collective.id}/{here}>{there}",
                collective=collective.id,
                phase=collective.phase,
                src=here,
                dst=there,
                bytes=size,
                start=start,
                first_byte=start,
                end=end,
                how="local" if here == there else "packets",
            )
