"""What is read off the ideal run, against formulas."""

from __future__ import annotations

import pytest

from emu.errors import InputError
from emu.plan.work import Work, bucket_floor, work_of
from emu.scenario.build import build_fabrics
from emu.scenario.schema import Scenario
from tests.unit.plan.plan_pieces import FAT_TREE, GRADIENTS, HYBRID, flows, scenario, work

GIB = 1 << 30
GOODPUT = 400e9 * 8948 / 9038
"""TCP payload bit/s of 400 Gb/s Ethernet at an MTU of 9000."""


def first(wanted: Scenario, buckets: int = 4) -> Work:
    return work_of(wanted, build_fabrics(wanted)[0], 1, buckets)


def test_a_ring_has_30_dependent_steps_and_the_ideal_of_its_formula() -> None:
    found = first(scenario({"name": "ring", "collective": "all-reduce", "size": "1GiB", "repeat": 2}))
    (ring,) = found.items
    assert ring.steps(None) == 60
    assert ring.seconds == pytest.approx(2 * (30 / 16) * GIB * 8 / GOODPUT)
    assert set(ring.messages) == {GIB / 16}
    assert found.busy(0) == pytest.approx(ring.seconds)


def test_layer_gradients_know_how_far_they_can_be_merged() -> None:
    (gradients,) = first(scenario(GRADIENTS)).items
    assert gradients.buckets == (38, 4)  # 36 layers, embedding and head
    assert [gradients.steps(count) for count in (4, 10, 38, None)] == [120, 300, 1140, 1140]


def test_a_steps_own_buckets_are_not_merged_further() -> None:
    wanted = scenario({**GRADIENTS, "buckets": 10})
    assert bucket_floor(wanted, 4) == 10
    (gradients,) = first(wanted, 10).items
    assert gradients.buckets == (10, 10)
    assert gradients.steps(None) == 300


def test_computations_and_pauses_take_no_wall_time() -> None:
    ring = {"name": "ring", "collective": "all-reduce", "size": "1GiB"}
    found = first(scenario(ring, {"name": "think", "compute": "1min"}, {**ring, "name": "again"}))
    assert found.end > 60
    assert found.busy(0) == pytest.approx(2 * (30 / 16) * GIB * 8 / GOODPUT)


def test_messages_too_small_to_send_take_no_wall_time() -> None:
    found = first(scenario({"name": "ring", "collective": "all-reduce", "size": "1GiB"}))
    assert found.busy(GIB / 16) > 0
    assert found.busy(GIB / 16 + 1) == 0


def test_overlapping_flows_and_changes_count_once() -> None:
    spans = [(10, 0.0, 0.2), (10, 0.1, 0.3), (10, 0.15, 0.18), (10, 0.55, 0.7)]
    found = work(spans=spans, dark=0.1, at=0.5)
    assert found.busy(10) == pytest.approx(0.3 + 0.2)  # 0 to 0.3, and 0.5 to 0.7 with the dark time
    assert found.busy(11) == pytest.approx(0.1)
    assert work().busy(0) == 0


def test_changes_after_the_workload_count_for_nothing() -> None:
    late = {**HYBRID, "schedule": [{**HYBRID["schedule"][0], "at": "9s"}]}
    found = first(scenario({"name": "ring", "collective": "all-reduce", "size": "64MiB"}, fabrics=[late]))
    assert found.changes == ()
    assert found.busy(0) == pytest.approx(found.items[0].seconds)


def test_a_flow_list_is_judged_by_the_flows_that_carry_its_bytes() -> None:
    rows = ["src,dst,bytes,start", *(f"{src},{src + 1},1000,0" for src in range(0, 8, 2)), "8,9,1000000,0"]
    (found,) = first(flows("\n".join(rows))).items
    assert found.seconds == pytest.approx(1_000_000 * 8 / GOODPUT)
    assert found.steps(None) == 1
    assert len(found.messages) == 5


def test_what_can_never_end_is_refused() -> None:
    dark = {**HYBRID, "circuits": {}, "schedule": []}
    wanted = scenario({"name": "ring", "collective": "all-reduce", "size": "1MiB"}, fabrics=[FAT_TREE, dark])
    with pytest.raises(InputError, match=r"fabrics\[1\].*ring can never end: no path from .* in epoch 0"):
        work_of(wanted, build_fabrics(wanted)[1], 1, 4)


def test_the_schedules_changes_are_part_of_the_ideal_and_of_the_wall_time() -> None:
    ring = {"name": "ring", "collective": "all-reduce", "size": "64MiB"}
    found = first(scenario(ring, {"name": "wait", "compute": "200ms"}, fabrics=[HYBRID]))
    (item,) = found.items
    assert len(found.changes) == 1
    assert found.busy(0) == pytest.approx(item.seconds + 0.010)


@pytest.mark.parametrize(
    "step",
    [
        {"collective": "broadcast", "algorithm": "chain", "chunks": 65_536},
        {"collective": "all-reduce", "algorithm": "ring", "repeat": 2000},  # of 480 messages each
    ],
)
def test_more_messages_than_fit_the_memory_are_refused_before_they_are_made(step: dict[str, object]) -> None:
    with pytest.raises(InputError, match="workload: its collectives make more than 500000 messages; use fewer"):
        first(scenario({"name": "many", "size": "1GiB", **step}))
