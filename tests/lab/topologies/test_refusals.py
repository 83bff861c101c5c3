"""Tables that would lose packets, or send them in circles, never reach a switch."""

from __future__ import annotations

import time
from unittest.mock import patch

import pytest

from controllers.routes import routes
from controllers.tables import Rule, Tables, address_number
from emu.lab.errors import LabError
from tests.lab.topologies.bench import Bench, nic, on_bench, rules_held
from tests.lab.topologies.probes import Capture, Probes, swallow
from topologies.fabric import Port

pytestmark = pytest.mark.lab

FIRST_RACK = address_number("10.0.0.0"), address_number("255.255.255.0")
CIRCLE = {"c0": 2, "a2": 4, "c1": 3, "a4": 3}
"""By switch: the port to the next one around c0, a2 (pod 1), c1 and a4 (pod 2)."""


def black_hole(tables: Tables) -> Tables:
    """The core c0 has no rule for pod 0."""
    pod = address_number("10.0.0.0")
    return {**tables, "c0": tuple(rule for rule in tables["c0"] if rule.destination != pod)}


def circle(tables: Tables) -> Tables:
    """Four switches hand packets for the first rack around."""
    return {**tables, **{switch: (Rule(500, port, *FIRST_RACK), *tables[switch]) for switch, port in CIRCLE.items()}}


def refusal(bench: Bench, spoiled: Tables) -> str:
    """Why these tables are not installed for epoch 0."""
    bench.lab.control._tables.clear()  # what was checked once is kept
    with patch("emu.lab.control.routes", return_value=spoiled), pytest.raises(LabError) as refused:
        bench.install()
    return str(refused.value)


def gets_through(bench: Bench, src: Port, dst: Port) -> bool:
    """Whether a probe gets from one NIC to another."""
    capture, sinks = Capture(bench, dst), swallow(bench, [dst])
    Probes(bench, src, dst).send()
    time.sleep(0.2)
    return len(capture.arrivals()) == len(sinks)


@on_bench(tables=False, kind="fat-tree", k=4, rate="20Mbps")
def test_spoiled_tables_are_refused_before_anything_is_installed(bench: Bench) -> None:
    """The reason names switch, destination and circle. Empty switches stay empty, good tables stay as they are."""
    good = routes(bench.fabric, bench.epoch)
    hole, loop = refusal(bench, black_hole(good)), refusal(bench, circle(good))
    assert "c0: having no rule drops packets for 10.0.0.2, though there is a path" in hole
    assert "in a circle" in loop
    assert [switch for switch in CIRCLE if switch not in loop] == []
    assert {switch: rules_held(switch) for switch in bench.switches} == dict.fromkeys(bench.switches, 0)
    assert not gets_through(bench, nic(8), nic(0))
    bench.install()
    held = {switch: len(table) for switch, table in good.items()}
    for spoiled in (black_hole(good), circle(good)):
        refusal(bench, spoiled)
        assert {switch: rules_held(switch) for switch in bench.switches} == held
    assert bench.lab.control.foreign_rules() == []
    assert gets_through(bench, nic(8), nic(0))
