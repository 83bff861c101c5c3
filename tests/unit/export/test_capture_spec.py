"""`capture:` in a scenario: which links are meant, and what is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import InputError
from emu.scenario import Scenario, build_fabrics, load
from emu.scenario.capture_spec import captured, link_name
from topologies.fabric import Fabric

SCENARIO = """\
fabrics:
  - {kind: hybrid, pods: 2, hosts_per_pod: 2, uplinks: 1, rate: 100Gbps, reconfiguration: 10ms, circuits: {o0: [t0-t1]}}
  - {kind: fat-tree, k: 4, rate: 100Gbps}
workload: {kind: collectives, steps: [{name: all, collective: all-reduce, size: 1MB, ranks: 0-3}]}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


def loaded(path: Path, capture: str) -> Scenario:
    path.write_text(f"{SCENARIO}capture: {capture}\n")
    scenario = load(path)
    build_fabrics(scenario)
    return scenario


def refusal(path: Path, capture: str) -> str:
    with pytest.raises(InputError) as refused:
        loaded(path, capture)
    return str(refused.value)


@pytest.fixture
def hybrid(written: Path) -> Fabric:
    return build_fabrics(loaded(written, "{links: h0}"))[0].fabric


def names(fabric: Fabric, *patterns: str) -> list[str]:
    return [link_name(fabric, port) for port in captured(fabric, patterns)]


def test_a_port_is_the_direction_in_which_it_transmits(hybrid: Fabric) -> None:
    assert names(hybrid, "h0:0") == ["h0:0 -> t0:1"]
    assert names(hybrid, "t0:1") == ["t0:1 -> h0:0"]


def test_a_node_stands_for_all_its_ports(hybrid: Fabric) -> None:
    assert names(hybrid, "h0 -> t0") == ["h0:0 -> t0:1"]
    assert set(names(hybrid, "o0")) == {f"o0:{n} -> {hybrid.peer(port)}" for n, port in _ports(hybrid, "o0")}


def _ports(fabric: Fabric, node: str) -> list[tuple[int, object]]:
    return [(port.number, port) for port in fabric.ports(node)]


def test_patterns_are_those_of_files(hybrid: Fabric) -> None:
    assert names(hybrid, "h[01]:*") == ["h0:0 -> t0:1", "h1:0 -> t0:2"]
    assert names(hybrid, "h? -> t1") == ["h2:0 -> t1:1", "h3:0 -> t1:2"]
    assert len(names(hybrid, "*")) == 2 * len(hybrid.links)
    assert len(names(hybrid, "* -> o*")) == 2


def test_a_link_that_several_patterns_mean_is_captured_once(hybrid: Fabric) -> None:
    assert names(hybrid, "h0", "h*", "h0:0 -> t0:1") == [f"h{n}:0 -> t{n // 2}:{n % 2 + 1}" for n in range(4)]


def test_the_defaults_are_modest(written: Path) -> None:
    capture = loaded(written, "{links: h0}").capture
    assert capture is not None
    assert (capture.links, capture.snaplen, capture.limit) == (("h0",), 128, 64 << 20)
    # 64 MiB by 2 links, 2 repeats and 128 + 16 bytes a frame.
    assert capture.frames(2, 2) == 116_508


def test_a_scenario_with_captures_is_read_back_from_its_json(written: Path) -> None:
    scenario = loaded(written, "{links: ['h0:0  ->  t0', o*], snaplen: 96B, limit: 1MiB}")
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert scenario.capture is not None
    assert scenario.capture.links == ("h0:0 -> t0", "o*")


def test_a_pattern_may_fit_one_fabric_only(written: Path) -> None:
    optical, electrical = build_fabrics(loaded(written, "{links: [o0]}"))
    assert len(captured(optical.fabric, ["o0"])) == 2
    assert captured(electrical.fabric, ["o0"]) == []


def test_an_unknown_link_is_refused_with_its_line_and_the_nearest(written: Path) -> None:
    message = refusal(written, "\n  links:\n    - h0:0 -> t0:1\n    - h99:0 -> t0:1")
    assert f"{written}:8: capture.links[1]: no fabric has a link 'h99:0 -> t0:1'; did you mean " in message
    assert "'h0:0 -> t0:1'" in message


def test_a_link_that_resembles_none_is_refused_with_some_that_are_valid(written: Path) -> None:
    message = refusal(written, "{links: [gpu]}")
    assert "valid: h0:0 -> t0:1, t0:1 -> h0:0" in message
    assert " more" in message


@pytest.mark.parametrize("text", ["'h0 ->'", "'-> t0'", "'h0 > t0'", "'h0 t0'", "7", "''"])
def test_what_is_no_link_is_refused_with_an_example(written: Path, text: str) -> None:
    message = refusal(written, f"{{links: [{text}]}}")
    assert ":5: capture.links[0]: " in message
    assert "h0:0 -> t0" in message


@pytest.mark.parametrize(
    ("capture", "what"),
    [
        ("{links: []}", "links"),
        ("{links: [h0], snaplen: 10B}", "snaplen"),
        ("{links: [h0], snaplen: 128KiB}", "snaplen"),
        ("{links: [h0], limit: 0B}", "limit"),
        ("{link: [h0]}", "did you mean 'links'?"),
        ("{links: [h0], limit: 10kB}", "capture.limit: leaves 69 frames for each of 1 links in 1 repeats"),
    ],
)
def test_values_that_make_no_sense_are_refused(written: Path, capture: str, what: str) -> None:
    assert what in refusal(written, capture)


def test_more_links_than_a_machine_stands_are_refused(written: Path) -> None:
    message = refusal(written, "{links: ['*']}")
    assert "capture.links: captures 96 links of fat-tree; 64 is the most" in message
