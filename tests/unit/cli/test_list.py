"""`emu list`: one line for each thing that a scenario can name, from where it is defined."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.cli.app import run_command
from topologies import registry

PLUGIN = '''\
from topologies.fabric import Fabric, Kind, Port
from topologies.parameters import Rate
from topologies.registry import builder

print("a plugin says something")

@builder("listed-pair")
def pair(*, rate: Rate = 100_000_000_000) -> Fabric:
    """Two hosts on one ToR.

    And more that no list shows.
    """
    fabric = Fabric("pair")
    fabric.add_switch("t0", Kind.TOR)
    for number in (0, 1):
        fabric.add_host(f"h{number}")
        fabric.connect(Port(f"h{number}", 0), Port("t0", number + 1), rate=rate)
    return fabric.finish()
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "_builders", dict(registry._builders))
    path = tmp_path / "pair.py"
    path.write_text(PLUGIN)
    return path


def test_everything_is_listed_in_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for heading in ("fabrics", "policies", "workloads", "models", "collectives"):
        assert heading in lines
    assert any(line.startswith("fat-tree") and "A k-ary fat-tree" in line for line in lines)
    assert any(line.startswith("templates") and "slack gate" in line for line in lines)
    assert any(line.startswith("rl-iteration") and line.endswith("sized from a model") for line in lines)
    assert any(line.startswith("Qwen3-8B") and "8.19 billion parameters, 36 layers" in line for line in lines)
    assert any(line.startswith("all-reduce") and "ring (default)" in line for line in lines)
    assert len(lines) == len(set(lines))


def test_one_part_is_listed_without_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "policies"]) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words[:2] == ["static", "scheduled"]
    assert "policies" not in words


def test_plugins_are_listed_and_what_they_print_is_no_part_of_it(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["list", "fabrics", "--plugin", str(plugin), "--json"]) == 0
    printed = capsys.readouterr()
    (found,) = [item for item in json.loads(printed.out)["fabrics"] if item["name"] == "listed-pair"]
    assert found == {"name": "listed-pair", "text": "Two hosts on one ToR.", "details": {"rate": "100Gbps"}}
    assert printed.err == "a plugin says something\n"


def test_algorithms_are_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "collectives", "--json"]) == 0
    (found,) = [i for i in json.loads(capsys.readouterr().out)["collectives"] if i["name"] == "broadcast"]
    assert {"chain", "direct", "tree", "two-level"} <= set(found["details"]["algorithms"])


@pytest.mark.parametrize(
    ("line", "words"),
    [("list fabric", "'fabric' is not one of"), ("list --plugin nowhere.py", "there is no such file")],
)
def test_what_cannot_be_listed_is_bad_input(capsys: pytest.CaptureFixture[str], line: str, words: str) -> None:
    assert run_command(line.split()) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_what_cannot_be_listed_is_told_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "foo"]) == 2
    parts = "'fabrics', 'policies', 'workloads', 'models', 'collectives'"
    expected = f"emu: error: Invalid value for 'WHAT': 'foo' is not one of {parts}; see --help\n"
    assert capsys.readouterr().err == expected
