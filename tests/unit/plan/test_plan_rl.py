"""Planning an iteration of RL training: what is merged, what is coalesced, and that the shipped one fits its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.plan.limits import limits
from emu.plan.work import Work, bucket_floor, work_of
from emu.scenario import load
from emu.scenario.build import build_fabrics
from emu.scenario.schema import Scenario
from tests.unit.plan.plan_pieces import FAT_TREE, HYBRID, item, planned, terms, work

SHIPPED = Path(__file__).resolve().parents[3] / "scenarios" / "quickstart.yaml"


def iteration(**workload: Any) -> Scenario:  # noqa: ANN401 - as YAML
    wanted = {"kind": "rl-iteration", "model": "Qwen3-8B", **workload}
    return Scenario.model_validate({"fabrics": [FAT_TREE], "workload": wanted})


def first(wanted: Scenario, buckets: int = 4) -> Work:
    return work_of(wanted, build_fabrics(wanted)[0], 1, buckets)


def test_every_label_is_an_item_and_only_gradients_can_be_merged() -> None:
    found = {one.name: one for one in first(iteration()).items}
    assert set(found) == {
        "gradients",
        "decode-tp2",
        "merge",
        "tail-tp4",
        "split",
        "attention-to-ffn",
        "ffn-to-attention",
        "weights",
    }
    assert found["gradients"].buckets == (38, 4)
    # a ring of four has six steps
    assert [found["gradients"].steps(count) for count in (4, 10, None)] == [24, 60, 228]
    assert [name for name, one in found.items() if one.buckets] == ["gradients"]
    assert {name for name, one in found.items() if one.coalesced} == {
        "decode-tp2",
        "tail-tp4",
        "attention-to-ffn",
        "ffn-to-attention",
    }
    assert len(found["decode-tp2"].rounds) == 4, "two rounds of two instances"
    assert found["weights"].steps(None) == 8 + 16 - 1, "eight hops, and fifteen chunks more"


def test_iterations_add_up() -> None:
    found = {one.name: one for one in first(iteration(iterations=2)).items}
    assert found["gradients"].buckets == (38, 4)
    assert [found["gradients"].steps(count) for count in (4, None)] == [48, 456]
    assert {one.phase for one in found.values()} == {"training.1", "generation.1", "weight-sync.1"}


def test_own_buckets_are_not_merged_further() -> None:
    assert bucket_floor(iteration(), 2) == 2
    assert bucket_floor(iteration(buckets=6), 2) == 6


def test_coalesced_messages_must_fill_eight_frames() -> None:
    small = item(steps=1, seconds=100.0, sizes=(900_000_000,))
    coalesced = type(small)(small.name, small.phase, small.rounds, small.messages, coalesced=True)
    asked = {limit.text: limit.tdf for limit in limits(work(coalesced), terms(beta=20_000.0))}
    (text,) = (text for text in asked if "coalesced" in text)
    assert asked[text] == pytest.approx(20_000 * 9000 * 8 / 900_000_000)  # sigma 12 500: 72 000 bytes
    assert not any("coalesced" in limit.text for limit in limits(work(small), terms(beta=20_000.0)))


def test_the_shipped_iteration_fits_its_budget_on_both_fabrics() -> None:
    shipped = load(SHIPPED)
    found = planned(shipped)
    assert shipped.emulation.budget == 150
    assert found.total <= 120, "there is room for a slower machine"
    assert len(found.estimates) == 2
    assert found.scale.tdf <= 20
    assert not any("too small" in note for note in found.notes)


def test_a_change_of_circuits_in_an_iteration_binds_the_scale() -> None:
    hybrid = {**HYBRID, "electrical_rate": "40Gbps"}
    wanted = Scenario.model_validate(
        {
            "fabrics": [hybrid],
            "workload": {"kind": "rl-iteration", "model": "Qwen3-8B"},
            "emulation": {"budget": "10min"},
        }
    )
    found = first(wanted)
    assert len(found.changes) == 1
    assert any("reconfiguration of 10 ms" in limit.text for limit in limits(found, terms()))
