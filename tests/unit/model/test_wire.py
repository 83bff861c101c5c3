"""The bytes of a frame."""

import pytest

from emu.wire import payload_efficiency, payload_per_frame


def test_jumbo_frames() -> None:
    assert payload_per_frame(9000) == 8948
    assert payload_efficiency(9000) == pytest.approx(8948 / 9038, rel=1e-15)


def test_plain_frames() -> None:
    # 1448 bytes in 1538 byte times: the 94.1 % that every TCP benchmark of Gigabit Ethernet shows.
    assert payload_efficiency(1500) == pytest.approx(0.9415, abs=5e-5)


def test_no_room() -> None:
    with pytest.raises(ValueError, match="52"):
        payload_efficiency(52)
