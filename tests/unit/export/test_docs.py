"""docs/exports.md says what there is, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from emu.export import chrome, hpcc, prometheus
from emu.export.names import MEANINGS
from emu.scenario import build_fabrics, load
from emu.scenario.capture_spec import MOST_LINKS, Capture
from emu.units import write_size
from tests.unit.export.golden import FOLDER

PAGE = (Path(__file__).parents[3] / "docs" / "exports.md").read_text()
COMMANDS = re.findall(r"^    emu export (.+)$", PAGE, re.MULTILINE)


def section(name: str) -> str:
    """The text under a heading."""
    return PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("name", list(MEANINGS))
def test_each_format_has_a_section_and_an_example(name: str) -> None:
    assert f"[`{name}`](#{name})" in PAGE
    assert f"--to {name}" in section(name)


def test_every_example_names_a_format_that_there_is() -> None:
    assert len(COMMANDS) >= len(MEANINGS)
    for command in COMMANDS:
        assert re.findall(r"--to (\S+)", command)[0] in MEANINGS


def test_every_metric_is_documented() -> None:
    text = (FOLDER / "metrics.prom").read_text()
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) > 30
    told = set(re.findall(r"`(emu_\w+|_\w+)`", section("prometheus")))
    for name in names:
        short = name.removeprefix("emu_phase")
        assert name in told or short in told, name
    whole = {name for name in told if name.startswith("emu_")}
    assert whole <= set(names)


def test_quantiles_ports_and_limits_are_those_of_the_code() -> None:
    assert "Quantiles are 0.5, 0.9, 0.99 and 1" in section("prometheus")
    assert prometheus.QUANTILES == (0.5, 0.9, 0.99, 1.0)
    assert f"always {hpcc.DPORT}," in section("hpcc-fct")
    assert f"Above {chrome.MOST_DETAILED:,} flows" in section("chrome-trace")
    assert f"Up to {MOST_LINKS} links" in section("pcapng")


def test_the_example_of_captures_is_a_scenarios_and_its_defaults_are_told(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", section("pcapng"), re.DOTALL)
    fabric = "{kind: hybrid, pods: 2, uplinks: 1, reconfiguration: 10ms, circuits: {o0: [t0-t1]}}"
    path = tmp_path / "scenario.yaml"
    path.write_text(
        f"fabrics: [{fabric}, {{kind: fat-tree, k: 4}}]\n"
        "workload: {kind: collectives, steps: [{name: all, collective: all-reduce, size: 1MB, ranks: 0-3}]}\n" + example
    )
    scenario = load(path)
    build_fabrics(scenario)
    told = dict(re.findall(r"^\| `(\w+)` \| `(\S+)` \|", section("pcapng"), re.MULTILINE))
    defaults = {name: Capture.model_fields[name].default for name in ("snaplen", "limit")}
    assert told == {name: write_size(size) for name, size in defaults.items()}
    assert scenario.capture is not None
    assert {"snaplen": scenario.capture.snaplen, "limit": scenario.capture.limit} == defaults
