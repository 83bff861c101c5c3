"""A NIC is the narrowest place: however many talk to a host, it sends and receives at its rate."""

from __future__ import annotations

import time

import pytest

from emu.wire import FRAME_CHECK, INTERFRAME_GAP, PREAMBLE
from tests.lab.topologies.bench import EFFICIENCY, Bench, Pair, nic, on_bench
from topologies.fabric import Port

pytestmark = pytest.mark.lab

RATE, SIZE = 20_000_000, 3_000_000
UNCOUNTED = PREAMBLE + INTERFRAME_GAP + FRAME_CHECK
"""Bytes of a frame that the wire carries and the kernel does not count."""


def load(bench: Bench, pairs: list[Pair], narrow: Port) -> tuple[float, float]:
    """Two shares of the rate while all pairs send: payload of its ideal, and frames on the wire at the narrow port.

    From the first write to the last read, so that neither can be flattered by what was queued before or after.
    """
    before, began = bench.lab.ports.read()[narrow], time.monotonic()
    parts = bench.send(dict.fromkeys(pairs, SIZE), timeout=8)
    after, ended = bench.lab.ports.read()[narrow], time.monotonic()
    assert [part.unread for part in parts] == [0] * len(pairs)
    took = max(part.end for part in parts) - min(part.start for part in parts)
    frames = after.bytes - before.bytes + UNCOUNTED * (after.packets - before.packets)
    return len(pairs) * SIZE * 8 / took / EFFICIENCY / RATE, frames * 8 / (ended - began) / RATE


@on_bench(kind="fat-tree", k=4, hosts=8, rate=f"{RATE}bps")
def test_a_nic_is_shared_by_all_that_use_it(bench: Bench) -> None:
    """One sender to two receivers, its ways part at once; and incast, whose ways meet at the last port."""
    for pairs, narrow in (
        ([(nic(0), nic(4)), (nic(0), nic(5))], nic(0)),
        ([(nic(4), nic(0)), (nic(1), nic(0))], bench.fabric.peer(nic(0))),
    ):
        ways = [set(bench.path(*pair)) for pair in pairs]
        assert set.intersection(*ways) == {narrow}
        payload, frames = load(bench, pairs, narrow)
        assert 0.9 <= payload <= 1.02
        assert frames <= 1.02
