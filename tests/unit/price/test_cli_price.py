"""`emu price` as its user calls it: what it prints, what it says of bad input, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.cli.app import run_command

SCENARIO = """fabrics:
  - {kind: fat-tree, k: 4}
  - kind: rfabric
    reconfiguration: 10ms
    electrical_rate: 100Gbps
workload: {kind: collectives, steps: [{name: a, collective: all-reduce, size: 1GB}]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    return path


def test_bills_and_how_they_compare(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["price", str(scenario), "--power", "mixnet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    # 16 NICs, 48 cables with a transceiver at each end, 80 switch ports.
    words = [line.split() for line in out.splitlines()]
    assert ["NICs", "400G", "16", "1,499", "23,984", "-"] in words
    assert ["transceivers", "400G", "96", "659", "63,264", "-"] in words
    assert ["EPS", "ports", "400G", "80", "1,090", "87,200", "-"] in words
    assert ["total", "174,448", "-"] in words
    assert ["fat-tree", "16", "174,448", "10,903", "-", "1.00"] in words
    assert "note: k=4 with 16 of 16 NICs, in 4 of 4 pods" in out
    assert "Dollars: MixNet's prices, from MixNet (SIGCOMM 2025), Table 4" in out
    assert "Watts:" not in out


def test_every_total_of_an_assumed_wiring_says_so(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["price", str(scenario)])
    out = capsys.readouterr().out
    assert sum(line.strip().startswith("total, wiring assumed") for line in out.splitlines()) == 1
    assert sum(line.strip().startswith("rfabric (wiring assumed)") for line in out.splitlines()) == 1
    assert "note: wiring assumed, as topologies/rfabric.py says" in out
    # Opus' table has no 100G, which the electrical network uses: no watts rather than wrong ones.
    assert "no power: table opus has no watts for transceivers of 100 Gb/s; it has 400G, 800G" in out


def test_json_has_the_same_for_programs(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["price", str(scenario), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    tree, circuits = data["fabrics"]
    assert (tree["name"], tree["nics"], tree["dollars"], tree["wiring_assumed"]) == ("fat-tree", 16, 174448, None)
    assert tree["dollars_per_nic"] == 10903
    assert tree["watts"] == pytest.approx(80 * 2524 / 64 + 96 * 10)
    assert tree["items"][0] == {
        "part": "nic",
        "rate_bps": 400_000_000_000,
        "count": 16,
        "dollars_each": 1499,
        "watts_each": None,
    }
    assert circuits["wiring_assumed"] == "topologies/rfabric.py"
    assert circuits["watts"] is None
    assert data["prices"]["name"] == "mixnet"
    assert data["power"]["source"].startswith("the cost script of Opus")


def test_a_table_of_ones_own(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[dollars.nic]\nany = 5\n[watts.nic]\nany = 2\n")
    assert run_command(["price", str(scenario), "--table", str(own), "--power", str(own), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)["fabrics"][0]
    assert (tree["dollars"], tree["watts"]) == (80, 32)
    assert any("dollars without transceivers and EPS ports" in note for note in tree["notes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--table", "mixnit"], "there is no price table 'mixnit'; did you mean 'mixnet'?"),
        (["--power", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (
            ["--table", "opus"],
            "fabric rfabric: table opus has no dollars for transceivers of 100 Gb/s; it has 400G",
        ),
    ],
)
def test_what_cannot_be_priced_is_one_line(
    scenario: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["price", str(scenario), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("emu: error: ")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_bad_table_is_named_with_line_and_key(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text("title = 'ours'\n[dollars.nic]\n100G = 'dear'\n")
    assert run_command(["price", str(scenario), "--table", str(own)]) == 2
    error = capsys.readouterr().err
    assert error == f"emu: error: {own}:3: dollars.nic.100G: must be a number from 0 on, not 'dear'\n"


def test_a_bad_scenario_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(SCENARIO.replace("k: 4", "k: 5"))
    assert run_command(["price", str(path)]) == 2
    assert f"{path}:2: fabrics[0].k: must be an even number" in capsys.readouterr().err
