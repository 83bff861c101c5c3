"""`emu schema`: the schema accepts what the loader accepts, refuses what it refuses, and explains the keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.cli.app import run_command
from emu.scenario.source import parse
from emu.units import UnitError, parse_duration, parse_rate, parse_size
from tests.unit.cli.test_list import PLUGIN
from topologies import registry

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))

BASE = """\
fabrics:
  - kind: hybrid
    rate: 400Gbps
    delay: 0s
    reconfiguration: 10ms
    circuits: {o0: [t0-t1]}
    policy: static
workload:
  kind: collectives
  steps:
    - {name: ring, collective: all-reduce, size: [64MiB, 2MB], ranks: "0-7, 9", after: []}
    - {name: work, compute: 1ms, after: ring}
"""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    from emu.scenario.editor_schema import editor_schema  # noqa: PLC0415

    return editor_schema()


@pytest.fixture(scope="module")
def accepts(schema: dict[str, Any]) -> Callable[[str], bool]:
    validator = jsonschema.Draft202012Validator(schema)
    return lambda text: validator.is_valid(parse(text, "")[0])


def test_it_is_printed_as_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == "emu scenario"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_it_accepts_every_scenario_that_comes_with_emu(path: Path, schema: dict[str, Any]) -> None:
    jsonschema.validate(parse(path.read_text(), str(path))[0], schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("rate: 400Gbps", "rate: 50 GB/s"),
        ("rate: 400Gbps", "rate: 400000Mbit/s"),
        ("delay: 0s", "delay: 0"),
        ("delay: 0s", "delay: '0'"),
        ("delay: 0s", "delay: 1.5µs"),
        ("reconfiguration: 10ms", "reconfiguration: 2min"),
        ("[64MiB, 2MB]", "64 MiB"),
        ("size: [64MiB, 2MB]", "sweep: {from: 1MiB, to: 4MiB}"),
        ("[64MiB, 2MB]", "layer-gradients"),
        ('"0-7, 9"', "all"),
        ('"0-7, 9"', "[0, 1, 5]"),
        ("after: ring", "after: [ring]"),
        ("policy: static", "policy: {kind: static}"),
        ("policy: static", "policy: {kind: templates, phases: {ring: mesh, work: {o0: [t0-t1]}}}"),
        ("policy: static", "schedule: [{at: 1s, circuits: {o0: [t0:5-t1:6]}}]"),
        ("policy: static", "schedule: {period: 1s, matchings: [{o0: [t0-t1]}, {o0: [t1-t2]}]}"),
        ("fabrics:", "emulation: {scale: {sigma: 400, beta: 2e4}}\nfabrics:"),
        ("fabrics:", "emulation: {scale: auto, budget: 5min, delay: best-effort}\nfabrics:"),
    ],
)
def test_it_accepts_every_form_that_the_loader_does(accepts: Callable[[str], bool], old: str, new: str) -> None:
    assert old in BASE
    assert accepts(BASE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate: 400Gbps", "rate: 400"),
        ("rate: 400Gbps", "rate: 400G"),
        ("rate: 400Gbps", "rate: 400ibps"),
        ("rate: 400Gbps", "rate: -1Gbps"),
        ("delay: 0s", "delay: 5"),
        ("reconfiguration: 10ms", "reconfiguration: 10 m"),
        ("reconfiguration: 10ms", "reconfiguraton: 10ms"),
        ("kind: hybrid", "kind: hybird"),
        ("kind: hybrid", "pods: 4"),
        ("kind: hybrid", "kind: fat-tree\n    pods: 4"),
        ("policy: static", "policy: fixed"),
        ("policy: static", "policy: {kind: templates}"),
        ("[64MiB, 2MB]", "64Mib"),
        ("[64MiB, 2MB]", "weight"),
        ("size: [64MiB, 2MB], ", ""),
        ("size: [64MiB, 2MB]", "size: 1MB, sweep: {from: 1MiB, to: 4MiB}"),
        ('"0-7, 9"', "some"),
        ("all-reduce", "allreduce"),
        ("compute: 1ms", "compute: 1ms, size: 1MB"),
        ("kind: collectives", "kind: flow-list"),
        ("fabrics:", "seed: -1\nfabrics:"),
        ("fabrics:", "emulation: {scale: 400}\nfabrics:"),
        ("fabrics:", "fabric:"),
    ],
)
def test_it_refuses_what_the_loader_does(accepts: Callable[[str], bool], old: str, new: str) -> None:
    assert old in BASE
    assert not accepts(BASE.replace(old, new, 1))


_NUMBERS = st.sampled_from(["0", "1", "12", "0.5", "1.25", "007", "1.", ".5", "-1", "", "0.0"])
_TIMES = ("s", "ms", "us", "\u00b5s", "\u03bcs", "ns", "min", "h", "m", "sec", "S", "Ms")
_RATES = ("b/s", "bps", "Gbps", "Gb/s", "GB/s", "Gibps", "kbits/s", "Gbit", "ibps")
_SIZES = ("KiB", "kiB", "MB", "Mb", "MiB", "iB", "B", "bytes", "byte", "Kibytes", "EiB", "")


@given(_NUMBERS, st.sampled_from(["", " "]), st.sampled_from([*_TIMES, *_RATES, *_SIZES]))
def test_quantities_are_texts_of_the_same_language(schema: dict[str, Any], number: str, space: str, unit: str) -> None:
    """What the pattern says is what the parsers say, but for whole numbers and ranges, which no pattern can tell."""
    text = f"{number}{space}{unit}"
    fabric, change = schema["$defs"]["fabric-fat-tree"]["properties"], schema["$defs"]["Emulation"]["properties"]
    forms = ((parse_rate, fabric["rate"]), (parse_duration, fabric["delay"]), (parse_size, change["queue"]))
    for parse_quantity, form in forms:
        try:
            parse_quantity(text)
            known = True
        except UnitError as error:
            known = "whole number" in str(error)
        assert jsonschema.Draft202012Validator(form).is_valid(text) == known, text


def test_every_key_that_a_user_writes_is_explained(schema: dict[str, Any]) -> None:
    assert "wall time" in schema["$defs"]["Emulation"]["properties"]["budget"]["description"]
    assert schema["properties"]["repeat"]["description"] == "how often each fabric runs it."
    hybrid = schema["$defs"]["fabric-hybrid"]
    assert hybrid["description"].startswith("Pods of one electrical ToR each")
    assert hybrid["properties"]["uplinks"]["description"] == "ports of each ToR into the OCS tier."
    assert "dark" in hybrid["properties"]["reconfiguration"]["description"]
    step = schema["$defs"]["CollectiveStep"]["properties"]
    assert step["root"]["description"].startswith("the rank that a broadcast starts from")
    assert step["after"]["description"] == "the steps that must have ended; default: the one before in the list."
    inline = schema["$defs"]["DecodeSpec"]["properties"]
    assert (inline["tp"]["description"], inline["batch"]["description"]) == ("ranks of an instance.", "its sequences.")


def test_plugins_add_their_fabrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_builders", dict(registry._builders))
    path = tmp_path / "pair.py"
    path.write_text(PLUGIN)
    assert run_command(["schema", "--plugin", str(path)]) == 0
    schema = json.loads(capsys.readouterr().out)
    text = "fabrics: [{kind: listed-pair, rate: 1Gbps}]\nworkload: {kind: flow-list, file: a.cm}\n"
    jsonschema.validate(parse(text, "")[0], schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parse(text.replace("rate", "speed"), "")[0], schema)


def test_references_need_no_quoting(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert '"$ref": "#/$defs/fabric-fat-tree"' in text
    assert "#/$defs/fabric fat-tree" not in text
