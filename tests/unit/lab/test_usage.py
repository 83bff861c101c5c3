"""What is booked for circuits, from made-up counters of OCS ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from controllers.epochs import Circuit, Epoch, duplex
from emu.lab.probing import FRAME_BYTES
from emu.lab.usage import UseMeter
from emu.measurement import CircuitUse
from topologies.fabric import Port
from topologies.hybrid import hybrid

FABRIC = hybrid(pods=4, hosts_per_pod=1, uplinks=1)
"""ToR i is at OCS port i + 1."""


class Counters:
    """The kernel's table of interfaces, as far as the OCS goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entered: Counter[int] = Counter()
        self.left: Counter[int] = Counter()
        self.size: Counter[int] = Counter()
        self.write()

    def carry(self, in_port: int, out_port: int | None, packets: int, size: int = 1000) -> None:
        """So many frames come in, and leave if there is a port for them."""
        self.entered[in_port] += packets
        if out_port is not None:
            self.left[out_port] += packets
            self.size[out_port] += packets * size
        self.write()

    def write(self) -> None:
        """As the kernel writes it: received bytes, packets and six more, then sent bytes, packets and six more."""
        rows = ["Inter-|   Receive  |  Transmit", " face |bytes packets", "    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0"]
        for port in range(1, 5):
            received, sent = f"77 {self.entered[port]} 0 0 0 0 0 0", f"{self.size[port]} {self.left[port]} 0 0 0 0 0 0"
            rows.append(f"o0-eth{port}: {received} {sent}")
        self.path.write_text("\n".join(rows))


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(tmp_path / "dev")


def meter(counters: Counters, epoch: Epoch, probes: Counter[Port] | None = None) -> UseMeter:
    return UseMeter(FABRIC, epoch, Counter() if probes is None else probes, counters.path)


def find(uses: Iterable[CircuitUse], epoch: int, in_port: int) -> CircuitUse:
    return next(use for use in uses if (use.epoch, use.in_port) == (epoch, in_port))


ONE = Epoch(0, {"o0": duplex([(1, 2)]) | {Circuit(3, 4)}})
TWO = Epoch(1, {"o0": frozenset({Circuit(1, 3), Circuit(3, 4)})})


def test_each_epoch_has_its_own_and_losses_lie_on_both_sides_of_the_middle(counters: Counters) -> None:
    """Port 1 sends 10 by the first circuit, loses 3 and 4 in the dark, and sends 20 by the second."""
    use = meter(counters, ONE)
    counters.carry(1, 2, 10)
    counters.carry(1, None, 3)
    use.read()
    counters.carry(1, None, 4)
    counters.carry(1, 3, 20, size=500)
    use.commit(TWO, dark_at=2.0, lit_at=3.0)
    counters.carry(1, 3, 5, size=500)
    rows = use.finish(5.0)
    assert find(rows, 0, 1) == CircuitUse(0, "o0", 1, 2, lit=2.0, duty=0.4, bytes=10_000, packets=10, lost=3)
    assert find(rows, 1, 1) == CircuitUse(1, "o0", 1, 3, lit=2.0, duty=0.4, bytes=12_500, packets=25, lost=4)


def test_a_circuit_that_is_kept_shines_through_the_change(counters: Counters) -> None:
    """What was in flight when counters were read is no loss: it leaves in the next epoch."""
    use = meter(counters, ONE)
    counters.carry(3, 4, 7)
    counters.entered[3] += 1
    counters.write()
    use.read()
    counters.left[4] += 1
    counters.carry(3, 4, 2)
    use.commit(TWO, 2.0, 3.0)
    rows = use.finish(4.0)
    assert [find(rows, epoch, 3).lost for epoch in (0, 1)] == [0, 0]
    assert [find(rows, epoch, 3).packets for epoch in (0, 1)] == [7, 3]
    assert [find(rows, epoch, 3).duty for epoch in (0, 1)] == [0.75, 0.25]


def test_packets_that_die_at_a_kept_circuit_are_lost_in_the_end(counters: Counters) -> None:
    use = meter(counters, ONE)
    counters.entered[3] += 5
    counters.write()
    use.commit(TWO, 2.0, 3.0)
    assert find(use.finish(4.0), 1, 3).lost == 5


def test_ports_without_a_circuit_show_only_what_they_lost(counters: Counters) -> None:
    use = meter(counters, ONE)
    counters.carry(4, None, 6)
    rows = use.finish(1.0)
    assert find(rows, 0, 4) == CircuitUse(0, "o0", 4, None, 0.0, 0.0, 0, 0, 6)
    assert {use.in_port for use in rows} == {1, 2, 3, 4}


def test_a_change_that_was_given_up_ends_no_epoch(counters: Counters) -> None:
    use = meter(counters, ONE)
    counters.carry(1, 2, 10)
    use.read()
    use.kept()
    counters.carry(1, 2, 5)
    (row,) = [row for row in use.finish(1.0) if row.in_port == 1]
    assert (row.packets, row.duty) == (15, 1.0)


def test_probes_are_not_counted(counters: Counters) -> None:
    """They come from the far end of the entry's cable and leave by the exit; one of them was lost."""
    probes: Counter[Port] = Counter()
    use = meter(counters, ONE, probes)
    counters.carry(1, 2, 10)
    counters.carry(1, 2, 3, size=FRAME_BYTES)
    counters.carry(1, None, 1)
    probes[FABRIC.peer(Port("o0", 1))], probes[Port("o0", 2)] = 4, 3
    row = find(use.finish(1.0), 0, 1)
    assert (row.packets, row.bytes, row.lost) == (10, 10_000, 0)
