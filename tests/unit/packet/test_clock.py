"""Modelled time beside wall time."""

from __future__ import annotations

import pytest

from emu.packet import clock as module
from emu.packet.clock import Jump, ModelClock


class _Wall:
    """A wall clock that a test turns."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> _Wall:
    turned = _Wall()
    monkeypatch.setattr(module, "time", turned)
    return turned


def test_modelled_time_runs_at_wall_over_dilation(wall: _Wall) -> None:
    clock = ModelClock(tdf=20)
    clock.start()
    wall.now += 10
    assert clock.now() == pytest.approx(0.5)
    assert clock.wall(0.75) == pytest.approx(115)


def test_a_jump_moves_time_on_and_is_remembered(wall: _Wall) -> None:
    clock = ModelClock(tdf=10)
    clock.start()
    wall.now += 1
    clock.jump(60.0)
    assert clock.now() == pytest.approx(60.0)
    wall.now += 5
    assert clock.now() == pytest.approx(60.5)
    assert clock.jumps == [Jump(pytest.approx(0.1), 60.0)]


def test_time_never_goes_back(wall: _Wall) -> None:
    clock = ModelClock(tdf=1)
    clock.start()
    wall.now += 3
    clock.jump(2.0)
    assert clock.now() == pytest.approx(3.0)
    assert clock.jumps == []
