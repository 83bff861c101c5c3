"""Prometheus' text format: against a golden file, and read back by promtool and by prometheus_client's parser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.export import golden
from tests.unit.export.golden import exported

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def text(run: Path) -> str:
    return exported(run, "prometheus")


@pytest.fixture(scope="module")
def samples(text: str) -> Samples:
    """Every sample by name and labels."""
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_the_text_is_as_it_was(run: Path, text: str) -> None:
    golden.check("metrics.prom", text, run)


def test_promtool_finds_nothing_to_say_against_it(text: str) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool is missing: apt-get install prometheus"
    done = subprocess.run(
        [promtool, "check", "metrics", "--extended"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "emu_phase_duration_seconds" in done.stdout


def test_every_family_says_what_it_is(text: str) -> None:
    for family in text_string_to_metric_families(text):
        assert family.type in ("gauge", "summary")
        assert family.documentation.endswith(".")
        assert family.name.startswith("emu_")


def test_phases_links_and_circuits_have_their_rows(samples: Samples) -> None:
    phase = {"fabric": "optical", "repeat": "1", "phase": "training"}
    assert of(samples, "emu_phase_duration_seconds", **phase) == 0.2
    assert of(samples, "emu_phase_slowdown_ratio", **phase) == 1.25
    link = {"fabric": "optical", "repeat": "2", "link": "h0:0", "peer": "t0:1"}
    assert of(samples, "emu_link_rate_bytes_per_second", **link) == 12.5e9
    assert of(samples, "emu_link_queue_drops", **link) == 1
    circuit = {"fabric": "optical", "repeat": "1", "epoch": "1", "ocs": "o0", "in_port": "1", "out_port": "2"}
    assert of(samples, "emu_circuit_duty_ratio", **circuit) == 0.65


def test_dark_time_has_its_four_measures(samples: Samples) -> None:
    found = {
        dict(labels)["measure"]: value
        for (name, labels), value in samples.items()
        if name == "emu_circuit_dark_seconds" and ("repeat", "1") in labels
    }
    assert found == pytest.approx({"asked": 0.01, "control": 0.01, "data_plane": 0.0099, "service": 0.012})


def test_collectives_are_summaries_with_their_mean_bandwidth(samples: Samples) -> None:
    step = {
        "fabric": "optical",
        "repeat": "1",
        "phase": "training",
        "collective": "gradients",
        "kind": "all-reduce",
        "algorithm": "ring",
    }
    assert of(samples, "emu_collective_completion_seconds_count", **step) == 3
    assert of(samples, "emu_collective_completion_seconds_sum", **step) == pytest.approx(0.07)
    assert of(samples, "emu_collective_completion_seconds", **step, quantile="0.5") == pytest.approx(0.02)
    assert of(samples, "emu_collective_completion_seconds", **step, quantile="1") == pytest.approx(0.04)
    # 100 MB in 10 ms, 200 MB in 40 ms, 100 MB in 20 ms.
    assert of(samples, "emu_collective_algbw_bytes_per_second", **step) == pytest.approx((10e9 + 5e9 + 5e9) / 3)
    assert of(samples, "emu_collective_busbw_bytes_per_second", **step) == pytest.approx(10e9)


def test_flows_are_counted_only_if_they_sent_packets(samples: Samples) -> None:
    phase = {"fabric": "electrical", "repeat": "2", "phase": "training"}
    assert of(samples, "emu_flow_completion_seconds_count", **phase) == 3
    assert of(samples, "emu_flow_completion_seconds_sum", **phase) == pytest.approx(0.0225)


def test_each_fabric_has_one_verdict(samples: Samples) -> None:
    def verdict(fabric: str, level: str) -> float:
        return of(samples, "emu_fabric_verdict", fabric=fabric, verdict=level)

    assert [verdict("optical", level) for level in ("VALID", "DEGRADED", "INVALID")] == [1, 0, 0]
    assert [verdict("electrical", level) for level in ("VALID", "DEGRADED", "INVALID")] == [0, 1, 0]


def test_a_fabric_and_a_repeat_can_be_chosen(run: Path) -> None:
    families = text_string_to_metric_families(exported(run, "prometheus", "electrical", 2))
    labelled = [s.labels for family in families for s in family.samples if "fabric" in s.labels]
    assert {labels["fabric"] for labels in labelled} == {"electrical"}
    assert {labels["repeat"] for labels in labelled if "repeat" in labels} == {"2"}
