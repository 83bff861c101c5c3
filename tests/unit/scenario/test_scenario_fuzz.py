"""Whatever a file holds, loading it gives a Scenario or one InputError, never anything else."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from emu.errors import InputError
from emu.scenario import Scenario, build_fabrics, json_schema, load
from emu.scenario.source import parse
from tests.unit.scenario.conftest import VALID

SCHEMA = json_schema()
CALM = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
MEAN_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-2, 70_000),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["", "all", "auto", "0-7", "10ms", "1e9", "400Gbps", "-1s", "16GiB", "0", "<<", "~", "*a", "weights"]
    ),
    st.lists(st.integers(-1, 20), max_size=4),
    st.dictionaries(st.sampled_from(["kind", "from", "to", "sigma", "o0", "x"]), st.text(max_size=5), max_size=3),
)


def check(path: Path, content: bytes) -> Scenario | None:
    """Load and build; the scenario, or None if it was refused as it should be."""
    path.write_bytes(content)
    scenario, error = attempt(path)
    if error is not None:
        assert str(error).isprintable(), "one line"
        assert str(error).startswith(str(path))
        assert error.line is None or 1 <= error.line <= content.count(b"\n") + content.count(b"\r") + 2
        assert error.problem
        return None
    assert scenario is not None
    assert Scenario.from_json(scenario.to_json()) == scenario
    return scenario


def attempt(path: Path) -> tuple[Scenario | None, InputError | None]:
    try:
        scenario = load(path)
        build_fabrics(scenario)
    except InputError as error:
        return None, error
    return scenario, None


def as_yaml(data: object) -> bytes:
    stream = io.BytesIO()
    YAML(typ="safe", pure=True).dump(data, stream)
    return stream.getvalue()


def places(data: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - plain data
    """Every (container, key) inside plain data."""
    own = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if isinstance(data, list) else []
    return [(data, key) for key, _ in own] + [place for _, value in own for place in places(value)]


@CALM
@given(st.data())
def test_spoilt_values(tmp_path: Path, data: st.DataObject) -> None:
    scenario = parse(VALID, "")[0]
    for _ in range(data.draw(st.integers(1, 3))):
        spots = places(scenario)
        container, key = spots[data.draw(st.integers(0, len(spots) - 1))]
        what = data.draw(st.sampled_from(["replace", "drop", "rename", "swap"]))
        if what == "drop":
            del container[key]
        elif what == "rename" and isinstance(container, dict):
            container[data.draw(st.text(max_size=8))] = container.pop(key)
        elif what == "swap":
            other, name = spots[data.draw(st.integers(0, len(spots) - 1))]
            container[key] = json.loads(json.dumps(other[name]))
        else:
            container[key] = data.draw(MEAN_VALUES)
    check(tmp_path / "scenario.yaml", as_yaml(scenario))


@CALM
@given(st.data())
def test_spoilt_bytes(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(VALID.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"\t", b"{", b"]", b": ", b"&a ", b"*a", b"\n", b"- "])
        )
        content[at : at + data.draw(st.integers(0, 3))] = piece
    check(tmp_path / "scenario.yaml", bytes(content))


@CALM
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_noise(tmp_path: Path, content: bytes) -> None:
    assert check(tmp_path / "scenario.yaml", content) is None


@CALM
@given(st.text(st.sampled_from("ab:{}[]-,&*!|>%@`'\"#?\t\n 01.~<"), max_size=60))
def test_noise_that_looks_like_yaml(tmp_path: Path, text: str) -> None:
    assert check(tmp_path / "scenario.yaml", text.encode()) is None


# -- from the schema --------------------------------------------------------------------------------------------------


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one return for each form of schema
    """Values that a JSON Schema (the forms that the scenario's uses) allows."""
    if "$ref" in schema:
        return values(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([values(form) for form in schema[several]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            return objects(schema)
        case "array":
            least = schema.get("minItems", 0)
            return st.lists(values(schema.get("items", {})), min_size=least, max_size=min(least + 2, 4))
        case "integer":
            least = schema.get("minimum", -5)
            return st.integers(least, min(schema.get("maximum", least + 30), least + 30))
        case "number":
            return st.floats(schema.get("minimum", -10), schema.get("maximum", 1e6))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "string":
            return strings(schema)
    return MEAN_VALUES


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        return st.dictionaries(
            st.sampled_from(["o0", "o1"]), values(schema.get("additionalProperties", {})), max_size=2
        )
    required = schema.get("required", [])
    fields = {key: values(inner) for key, inner in schema["properties"].items()}
    return st.fixed_dictionaries(
        {key: fields[key] for key in required}, optional={key: fields[key] for key in fields if key not in required}
    )


def strings(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    examples = schema.get("examples", [])
    pattern = st.from_regex(schema["pattern"], fullmatch=True) if "pattern" in schema else st.text(max_size=8)
    short = pattern.filter(lambda text: len(text) <= schema.get("maxLength", 100))
    circuits = st.sampled_from(["t0-t1", "t1-t2", "1-3", "t0:5-t1:5", "Qwen3-8B"])
    return st.one_of(st.sampled_from(examples), short) if examples else st.one_of(short, circuits)


@CALM
@given(st.data())
def test_what_the_schema_allows(tmp_path: Path, data: st.DataObject) -> None:
    scenario = data.draw(values(SCHEMA))
    check(tmp_path / "scenario.yaml", as_yaml(scenario))


def test_the_checker_sees_valid_scenarios(tmp_path: Path) -> None:
    assert check(tmp_path / "scenario.yaml", VALID.encode()) is not None
