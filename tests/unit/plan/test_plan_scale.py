"""Whole plans: the scale that is chosen, what chose it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.errors import InputError
from emu.plan import describe
from emu.scenario.load import load
from emu.units import write_size
from tests.unit.plan.plan_pieces import FAT_TREE, GRADIENTS, HYBRID, capacity, flows, planned, scenario

RING = {"name": "ring", "collective": "all-reduce", "size": "16GiB"}
SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


def test_the_quickstart_fits_a_laptop() -> None:
    wanted = load(SCENARIOS / "quickstart.yaml")
    chosen = planned(wanted)
    assert wanted.emulation.budget == 150
    assert chosen.nominal
    assert chosen.total < 110, "and a slower one too"
    assert (chosen.scale.beta, chosen.buckets) == (20_000, 9)


def test_two_collectives_fit_a_laptop() -> None:
    wanted = load(SCENARIOS / "two-collectives.yaml")
    chosen = planned(wanted)
    assert (chosen.scale.sigma, chosen.scale.beta, chosen.buckets) == (2000, 20_000, 2)
    assert chosen.rate == 20e6
    assert chosen.nominal
    assert chosen.merged == "gradients: 38 layer buckets into 2"
    assert all(10 <= estimate.traffic <= 25 for estimate in chosen.estimates)
    assert chosen.total < wanted.emulation.budget


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_that_is_shipped_has_a_plan_within_its_budget(file: Path) -> None:
    wanted = load(file)
    if wanted.engine == "model":  # no lab, so no scale
        return
    chosen = planned(wanted)
    assert chosen.total <= chosen.budget
    assert chosen.scale.sigma >= 1


def test_no_merging_where_steps_cost_nothing() -> None:
    chosen = planned(scenario(GRADIENTS, budget="40s"), capacity(cost=1e-5))
    assert chosen.buckets is None
    assert chosen.merged == ""
    assert not chosen.nominal


def test_gradients_are_merged_no_further_than_needed() -> None:
    chosen = planned(scenario(GRADIENTS, RING, budget="40s"), capacity(cost=0.001))
    # 38 buckets: 1140 steps of 1 ms in 5 % of 0.62 s want a TDF of 36.7; 16 GiB in 30 steps want 0.93 only.
    assert chosen.scale.tdf == 2  # 60 steps, merged into two, want 1.93
    assert chosen.buckets == 2
    chosen = planned(scenario(GRADIENTS, RING, scale={"sigma": 2000, "beta": 20_000}), capacity(cost=0.001))
    assert chosen.buckets == 10  # 30 steps each: 300 ms in 5 % of 620.5 ms want 9.67; eleven would want 10.6


def test_the_dark_time_binds_where_nothing_else_does() -> None:
    wanted = scenario(RING, fabrics=[HYBRID], budget="35s")
    chosen = planned(wanted, capacity("hybrid", cost=1e-5, jitter=0.020))
    assert chosen.scale.tdf == 10  # 5 x 20 ms of jitter by 10 ms
    assert any("a reconfiguration of 10 ms must take 100 ms here" in reason for reason in chosen.binding)


def test_all_fabrics_share_the_scale_of_the_slowest() -> None:
    slow = {**FAT_TREE, "name": "slow"}
    chosen = planned(scenario(RING, fabrics=[FAT_TREE, slow]), capacity(rate=200e6), capacity("slow", rate=20e6))
    assert chosen.scale.beta == 40_000
    assert chosen.binding[0].startswith("beta 40000: slow carries 20 Mb/s per NIC")


def test_repeats_take_their_time() -> None:
    one, three = planned(scenario(RING)), planned(scenario(RING, repeat=3))
    assert three.scale == one.scale
    assert three.estimates[0].traffic == pytest.approx(3 * one.estimates[0].traffic)


def test_longer_runs_are_planned_for_better_measurements_if_short_still() -> None:
    small = {**RING, "size": "256MiB"}
    # 30 steps at 5 ms in 5 % of 10.2 ms want 295; 64 frames in 16 MiB want 687.
    assert planned(scenario(small, budget="20s")).scale.tdf == 300
    chosen = planned(scenario(small, budget="60s"))
    assert chosen.scale.tdf == 800
    assert "there is time for more than it takes" in chosen.binding[-1]


@pytest.mark.parametrize("name", ["quickstart", "two-collectives"])
def test_a_slow_machine_gets_a_plan_too(name: str) -> None:
    wanted = load(SCENARIOS / f"{name}.yaml")
    slow = [capacity(name, rate=46e6, cost=0.011) for name in ("fat-tree", "hybrid")]
    assert planned(wanted, *slow).total < wanted.emulation.budget


def test_a_round_dilation_gives_way_to_the_budget() -> None:
    small = {**RING, "size": "256MiB"}
    assert planned(scenario(small, budget="19.33s")).scale.tdf == 296  # 300 would take 19.36 s


def test_a_budget_that_is_too_small_is_refused_with_the_limit_against_it() -> None:
    with pytest.raises(InputError) as caught:
        planned(scenario({**RING, "size": "256MiB"}, budget="18s"))
    message = str(caught.value)
    assert "emulation.budget: no scale fits: it takes about 20 s, more than the budget of 18 s" in message
    assert "ring: 30 dependent steps at 5 ms must stay under 5% of an ideal of" in message
    assert "write emulation.budget: 20s, or use larger sizes" in message


def test_a_dark_time_too_short_for_any_scale_is_refused() -> None:
    fast = {**HYBRID, "reconfiguration": "1us"}
    with pytest.raises(InputError, match=r"sigma would be 0\.4, below 1.*a reconfiguration of 1 us must take 50 ms"):
        planned(scenario(RING, fabrics=[fast]))


def test_a_workload_that_sends_nothing_runs_in_real_time() -> None:
    chosen = planned(scenario({"name": "think", "compute": "1h"}))
    assert chosen.scale.tdf == 1
    assert chosen.estimates[0].traffic == 0
    assert chosen.binding[-1].startswith("TDF 1: nothing asks for more")


def test_what_no_scale_can_show_is_said() -> None:
    chosen = planned(flows("src,dst,bytes,start\n0,1,100,0\n"))
    assert chosen.scale.tdf == 1
    assert any(note.startswith("flows: too small to be measured at any scale") for note in chosen.notes)
    assert "flows: 100% of its bytes are in messages too small to send, and are charged" in chosen.notes


# -- scales that the scenario gives -----------------------------------------------------------------------------------


def given_scale(sigma: float, beta: float, **emulation: Any) -> dict[str, Any]:  # noqa: ANN401 - as YAML
    return {"scale": {"sigma": sigma, "beta": beta}, **emulation}


def test_a_given_scale_is_taken_as_it_is() -> None:
    chosen = planned(scenario(RING, **given_scale(700, 21_000)))
    assert (chosen.scale.sigma, chosen.scale.beta) == (700, 21_000)
    assert chosen.binding == ("the scenario gives the scale",)
    assert chosen.notes == ()


@pytest.mark.parametrize(
    ("beta", "note"),
    [
        (5000, "fat-tree: NICs at 80 Mb/s cannot work: with all hosts sending they reach 60 Mb/s"),
        (8000, "fat-tree: NICs at 50 Mb/s are over 60% of the 60 Mb/s that they reach"),
    ],
)
def test_a_given_rate_beyond_the_capacity_is_noted(beta: float, note: str) -> None:
    assert note in planned(scenario(RING, **given_scale(250, beta))).notes


def test_limits_that_a_given_scale_misses_are_noted() -> None:
    chosen = planned(scenario({**RING, "size": "256MiB"}, **given_scale(200, 20_000)))
    assert any("30 dependent steps at 5 ms must stay under 5%" in note for note in chosen.notes)


def test_a_given_scale_over_the_budget_is_refused() -> None:
    with pytest.raises(InputError, match=r"emulation\.scale: .* more than its budget of 120 s; write .*: 160s"):
        planned(scenario(RING, **given_scale(100, 20_000)))


def test_links_too_slow_to_time_anything_are_refused() -> None:
    with pytest.raises(InputError, match=r"emulation\.scale\.beta: fat-tree: .* would run at 40 kb/s"):
        planned(scenario(RING, **given_scale(1e6, 1e7)))


# -- properties and text ----------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 2**36),
    steps=st.sampled_from(["all-reduce", "broadcast", "all-to-all", "incast"]),
    rate=st.floats(5e6, 5e8),
    cost=st.floats(1e-5, 2e-2),
)
def test_a_plan_keeps_its_promises(size: int, steps: str, rate: float, cost: float) -> None:
    fabric = {"kind": "fat-tree", "k": 2, "rate": "400Gbps"}
    wanted = scenario({"name": "s", "collective": steps, "size": write_size(size)}, fabrics=[fabric])
    try:
        chosen = planned(wanted, capacity(rate=rate, cost=cost))
    except InputError as error:
        assert "more than the budget" in str(error)  # noqa: PT017 - either outcome is right, each to be checked
        return
    assert chosen.total <= chosen.budget
    assert chosen.scale.sigma >= 1
    assert chosen.scale.tdf >= 1
    assert chosen.rate <= 0.6 * rate * (1 + 1e-6)


def test_a_plan_reads_as_lines_that_answer_how_long_and_why() -> None:
    lines = describe(planned(load(SCENARIOS / "two-collectives.yaml")))
    assert lines[0] == (
        "scale: sigma 2000 (bytes), beta 20000 (rates), TDF 10: the fastest NICs run at 20 Mb/s, "
        "one modelled second takes 10 s"
    )
    assert lines[1].startswith("because: beta 20000: fat-tree carries 60 Mb/s per NIC")
    assert "because: TDF 10: fat-tree: gradients: 60 dependent steps at 5 ms" in lines[2]
    assert any(line.startswith("time: hybrid about 33 s (start 8 s, calibration 12 s") for line in lines)
    assert "merged: gradients: 38 layer buckets into 2" in lines
    assert "time: fat-tree about 29 s (start 8 s, calibration 8 s, traffic 13 s)" in lines
    assert any(line.startswith("time: about 61 s in all; the budget is 150 s") for line in lines)
    assert any(line.startswith("nominal: this machine was not measured") for line in lines)
