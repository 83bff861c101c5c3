"""Every limit, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from emu.plan.limits import (
    charged_shares,
    frames,
    limits,
    merging_limits,
    message_wishes,
    small,
    smallest_kept,
    step_wishes,
)
from emu.plan.work import Item, Round
from tests.unit.plan.plan_pieces import item, terms, work


def test_dependent_steps_cost_5_percent_at_most() -> None:
    (steps, _) = limits(work(item(steps=10, seconds=0.1)), terms(cost=0.005))
    assert steps.tdf == pytest.approx(10 * 0.005 / (0.05 * 0.1))
    assert "10 dependent steps at 5 ms must stay under 5% of an ideal of 100 ms" in steps.text


def test_a_reconfiguration_takes_50_ms_or_five_jitters() -> None:
    (dark,) = limits(work(dark=0.010), terms(jitter=0.001))
    assert dark.tdf == pytest.approx(0.050 / 0.010)
    (dark,) = limits(work(dark=0.010), terms(jitter=0.020))
    assert dark.tdf == pytest.approx(5 * 0.020 / 0.010)


def test_all_but_5_percent_of_a_phases_bytes_are_sent() -> None:
    sizes = [10_000] * 50 + [4_750_000, 4_750_000]  # the small ones hold 5 % exactly
    kept = list(limits(work(item(sizes=sizes)), terms()))[-1]
    assert kept.tdf == pytest.approx(20_000 * 9000 / 4_750_000)
    kept = list(limits(work(item(sizes=[10_000, *sizes])), terms()))[-1]
    assert kept.tdf == pytest.approx(20_000 * 9000 / 10_000)


def test_a_share_that_no_scale_could_send_binds_nothing_and_is_charged() -> None:
    found = work(item(sizes=[1_000] * 1_000 + [9_000_000]))
    assert [limit.subject for limit in limits(found, terms())] == ["step"]
    assert charged_shares(found, 1.0, 9000) == {"p": pytest.approx(0.1)}
    assert charged_shares(found, 1001.0, 9000) == {"p": 1.0}


def test_phases_are_judged_each_by_itself() -> None:
    big, little = item(sizes=[10_000_000] * 9, phase="big"), item(sizes=[100_000], phase="little")
    found = [limit for limit in limits(work(big, little), terms()) if limit.subject == "little"]
    assert [limit.tdf for limit in found] == [pytest.approx(20_000 * 9000 / 100_000)]


def test_nothing_is_asked_of_sizes_if_all_are_sent() -> None:
    assert len(list(limits(work(item()), terms(charging=False)))) == 1


def test_a_step_that_no_scale_can_show_binds_nothing() -> None:
    tiny = work(item(steps=30, seconds=1e-6, sizes=[100]))
    assert small(tiny, terms()) == ["step"]
    assert list(limits(tiny, terms())) == []


def test_a_step_whose_messages_fill_no_frame_binds_nothing() -> None:
    tiny = work(item(steps=1, seconds=1.0, sizes=[8_999]))
    assert small(tiny, terms()) == ["step"]
    assert list(limits(tiny, terms())) == []
    assert small(tiny, terms(charging=False)) == []


def test_merging_loosens_the_limit_of_gradients_only() -> None:
    rounds = tuple(Round(f"g#{number}", 30, 0.1, 1 << 20) for number in range(4))
    gradients = Item("g", "p", rounds, np.array([1e6]), buckets=(38, 4))
    found = work(gradients, item())
    assert [limit.tdf for limit in merging_limits(found, terms(buckets=4))] == [pytest.approx(120 * 0.005 / 0.02)]
    assert [limit.tdf for limit in merging_limits(found, terms())] == [pytest.approx(38 * 30 * 0.005 / 0.02)]
    assert [wish.subject for wish in step_wishes(found, terms())] == ["step"]


def test_each_collective_of_a_sweep_has_a_wish() -> None:
    rounds = (Round("s#0", 30, 0.001, 1 << 20), Round("s#1", 30, 0.004, 1 << 22))
    found = work(Item("s", "p", rounds, np.array([1e6])))
    wanted = {wish.subject: wish.tdf for wish in step_wishes(found, terms())}
    assert wanted == {"s#0": pytest.approx(30 * 0.005 / 0.05e-3), "s#1": pytest.approx(30 * 0.005 / 0.2e-3)}


def test_messages_are_best_64_frames_long() -> None:
    (wish,) = message_wishes(work(item(sizes=[1_000_000])), terms())
    assert wish.tdf == pytest.approx(20_000 * 9000 * 64 / 1_000_000)
    assert frames(item(sizes=[1_000_000]), 20_000 / wish.tdf, 9000) == pytest.approx(64)


def test_an_ideal_of_nothing_asks_for_everything() -> None:
    (steps,) = step_wishes(work(item(seconds=0.0)), terms())
    assert steps.tdf == math.inf


def test_smallest_kept_counts_what_is_smaller() -> None:
    sizes = np.array([5.0, 95.0, 100.0])
    assert smallest_kept(sizes, 0.0) == 5
    assert smallest_kept(sizes, 0.025) == 95
    assert smallest_kept(sizes, 0.5) == 100
    assert smallest_kept(np.array([7.0, 7.0, 7.0]), 0.05) == 7
