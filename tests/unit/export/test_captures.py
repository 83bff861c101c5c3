"""Captures: the clock that their index keeps, and how they get into a run directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.captures import FOLDER, INDEX, CapturedRepeat, Captures, collect, read_captures
from emu.packet.clock import Jump, ModelClock

ZERO = 1_000_000_000_000


def repeat(*jumps: tuple[float, float], tdf: float = 10.0) -> CapturedRepeat:
    return CapturedRepeat(1, ZERO, tdf, list(jumps), [])


def test_modelled_time_runs_at_the_dilation_from_time_zero() -> None:
    assert repeat().wall_ns(0.0) == ZERO
    assert repeat().wall_ns(0.25) == ZERO + 2_500_000_000


def test_what_was_jumped_over_took_no_wall_time() -> None:
    one = repeat((1.0, 3.0), (4.0, 4.5))
    assert one.wall_ns(1.0) == ZERO + 10_000_000_000
    assert one.wall_ns(2.0) == one.wall_ns(1.0)
    assert one.wall_ns(3.0) == one.wall_ns(1.0)
    assert one.wall_ns(4.0) == ZERO + 20_000_000_000
    assert one.wall_ns(5.0) == ZERO + 25_000_000_000


@given(st.lists(st.tuples(st.floats(0.001, 5), st.floats(0.001, 5)), max_size=5), st.floats(0, 20))
def test_the_index_agrees_with_the_clock_of_the_run(stretches: list[tuple[float, float]], after: float) -> None:
    clock = ModelClock(4.0)
    clock.start()
    began, now = clock.wall(0.0), 0.0
    for run, jump in stretches:
        clock.jumps.append(Jump(now + run, now + run + jump))
        clock._origin -= jump * 4.0  # what a jump does to it
        now += run + jump
    made = repeat(*((jump.start, jump.end) for jump in clock.jumps), tdf=4.0)
    expected = round((clock.wall(now + after) - began) * 1e9)
    assert made.wall_ns(now + after) - ZERO == pytest.approx(expected, abs=2000)


def test_an_index_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = Captures(96, [repeat((1.0, 2.0))])
    made.write(tmp_path)
    assert read_captures(tmp_path) == made
    assert [path.name for path in tmp_path.iterdir()] == [INDEX]
    assert read_captures(tmp_path / "elsewhere") is None


def test_captures_move_from_the_labs_folder_into_the_runs(tmp_path: Path) -> None:
    lab = tmp_path / "labs" / "optical"
    (lab / FOLDER).mkdir(parents=True)
    Captures(96).write(lab / FOLDER)
    collect(lab, tmp_path, "optical")
    assert read_captures(tmp_path / FOLDER / "optical") == Captures(96)
    assert not (lab / FOLDER).exists()
    collect(lab, tmp_path, "optical")  # nothing was captured: nothing is done
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["optical"]
