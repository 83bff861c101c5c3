"""Messages that are charged instead of sent."""

from __future__ import annotations

import pytest

from emu.packet.charging import Charges, Charging
from workloads.protocol import Endpoint, Transfer


def _message(name: str, size: int) -> Transfer:
    return Transfer(name, Endpoint("h0", 0), Endpoint("h1", 0), size, phase="p")


def test_only_what_scales_below_one_mtu_is_charged_unless_it_must_be_sent() -> None:
    assert Charging(mtu=9000, alpha=0.0).charges(8999)
    assert not Charging(mtu=9000, alpha=0.0).charges(9000)
    assert not Charging(mtu=9000, alpha=0.0, send=True).charges(1)


def test_a_message_is_charged_alpha_and_its_bytes_at_the_links_rate() -> None:
    # 5 us + 50 000 bytes at 400 Gb/s (50 GB/s): 6 us
    assert Charging(9000, 5e-6).seconds(50_000, 400_000_000_000) == pytest.approx(6e-6)


def test_charged_messages_end_in_order_of_their_ends_and_can_be_cancelled() -> None:
    charges = Charges()
    charges.add(_message("late", 10), 1.0, 0.5)
    charges.add(_message("early", 20), 1.0, 0.25)
    charges.add(_message("gone", 30), 1.0, 0.1)
    charges.forget("gone")
    assert charges.next_end == 1.25
    assert charges.due(1.2) == []
    rows = charges.due(2.0)
    assert [(row.id, row.start, row.end, row.how, row.bytes) for row in rows] == [
        ("early", 1.0, 1.25, "charged", 20),
        ("late", 1.0, 1.5, "charged", 10),
    ]
    assert charges.next_end is None
