"""A scenario survives JSON bit for bit, and its JSON Schema describes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.scenario import Scenario, json_schema, load
from emu.scenario.load import validate
from emu.scenario.source import Source, parse
from emu.units import MAX_RATE, MAX_SIZE, write_duration, write_rate, write_size
from tests.unit.scenario.conftest import VALID

MINIMAL = {
    "fabrics": [{"kind": "fat-tree"}],
    "workload": {"kind": "collectives", "steps": [{"name": "one", "collective": "broadcast", "size": "1MiB"}]},
}


def test_json_round_trip(example: Scenario) -> None:
    again = Scenario.from_json(example.to_json())
    assert again == example
    assert again.to_json() == example.to_json()
    assert again.hash == example.hash
    assert [type(fabric) for fabric in again.fabrics] == [type(fabric) for fabric in example.fabrics]


def test_pydantic_json_round_trip(example: Scenario) -> None:
    assert Scenario.model_validate_json(example.model_dump_json(by_alias=True)) == example


@given(st.integers(1, MAX_RATE), st.floats(1e-12, 1e6), st.integers(1, MAX_SIZE), st.floats(0, 1e6), st.floats(1, 1e9))
def test_quantities_survive_exactly(rate: int, delay: float, size: int, at: float, sigma: float) -> None:
    delay, at = (value if value >= 1e-12 else 0.0 for value in (delay, at))
    fabric = {"kind": "fat-tree", "rate": write_rate(rate), "delay": write_duration(delay)}
    step = {"name": "s", "collective": "broadcast", "size": write_size(size), "at": write_duration(at)}
    scale = {"sigma": sigma, "beta": 1e9}
    data = {"fabrics": [fabric], "workload": {"kind": "collectives", "steps": [step]}, "emulation": {"scale": scale}}
    scenario = validate(data, Source())
    again = Scenario.from_json(scenario.to_json())
    assert again == scenario
    assert again.fabrics[0].parameters["rate"] == rate
    assert again.fabrics[0].parameters["delay"] == delay
    assert again.workload.steps[0].size == (size,)  # type: ignore[union-attr]
    assert again.workload.steps[0].at == at  # type: ignore[union-attr]
    assert again.emulation.scale.sigma == sigma  # type: ignore[union-attr]


def test_the_hash_is_of_the_content_not_of_the_text(write: Callable[[str], Path]) -> None:
    first = load(write(VALID)).hash
    assert load(write("# a comment\n" + VALID.replace("100Gbps", "0.1Tb/s"))).hash == first
    assert load(write(VALID.replace("100Gbps", "101Gbps"))).hash != first
    assert len(first) == 64


def test_a_resolved_flow_list_needs_its_file_no_more(write: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "a.cm").write_text("Nodes 2\n")
    text = "fabrics: [{kind: fat-tree}]\nworkload: {kind: flow-list, file: a.cm}\n"
    scenario = load(write(text))
    (tmp_path / "a.cm").unlink()
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_the_scenario_is_immutable(example: Scenario) -> None:
    with pytest.raises(ValueError, match="frozen"):
        example.seed = 3  # type: ignore[misc]


def test_the_json_schema_is_one_and_accepts_scenarios(example: Scenario) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(parse(VALID, "")[0], schema)
    jsonschema.validate(json.loads(example.to_json()), schema)
    jsonschema.validate(MINIMAL, schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed: 7", "seed: x"),
        ("seed: 7", "sede: 7"),
        ("rate: 100Gbps", "rate: 100"),
        ("rate: 100Gbps", "rate: 100GB"),
        ("queue: 16MiB", "queue: 16Mib"),
        ("    k: 4", "    kk: 4"),
        ("kind: hybrid", "kind: hybird"),
        ("all-reduce", "allreduce"),
    ],
)
def test_the_json_schema_refuses_what_loading_refuses(old: str, new: str) -> None:
    assert old in VALID
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parse(VALID.replace(old, new, 1), "")[0], json_schema())
