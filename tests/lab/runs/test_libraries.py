"""A run on the second OpenFlow library."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import emu
from tests import libraries

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]

_SCENARIO = """
name: rewired-by-ryu
emulation: {scale: {sigma: 1000, beta: 20000}}
fabrics:
  - kind: hybrid
    pods: 2
    hosts_per_pod: 1
    uplinks: 1
    reconfiguration: 10ms
    circuits: {o0: []}
    schedule: [{at: 100ms, circuits: {o0: [t0-t1]}}]
workload:
  kind: collectives
  steps: [{name: crossing, phase: one, collective: permutation, size: 2GB, at: 150ms}]
"""


def test_ryu_rewires_a_run_and_the_manifest_names_it(
    monkeypatch: pytest.MonkeyPatch, run_scenario: Callable[..., emu.RunRecord]
) -> None:
    """The change is committed, and what crosses between the pods afterwards goes over the new circuit, both ways."""
    libraries.use(libraries.RYU, monkeypatch)
    record = run_scenario(_SCENARIO)
    facts = record.fabric("hybrid").facts
    assert facts is not None
    assert facts.versions["controller"].startswith(libraries.VERSIONS[libraries.RYU])
    (change,) = record.circuits.to_dict("records")
    assert (change["epoch"], change["outcome"]) == (1, "committed")
    links = record.links[record.links["peer"].str.startswith("o0:")]
    carried = dict(zip(links["link"], links["payload_bytes"], strict=True))
    assert carried == pytest.approx({"t0:2": 2e9, "t1:2": 2e9}, rel=0.02)
