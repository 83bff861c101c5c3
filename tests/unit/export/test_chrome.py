"""The Chrome trace: against a golden file and a strict schema, and by what a viewer needs to draw it."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.export import chrome
from emu.export.trace_events import lanes
from tests.unit.export import golden
from tests.unit.export.golden import FOLDER, exported

Event = dict[str, Any]


@pytest.fixture(scope="module")
def trace(run: Path) -> dict[str, Any]:
    """Both fabrics and repeats."""
    found: dict[str, Any] = json.loads(exported(run, "chrome-trace"))
    return found


@pytest.fixture(scope="module")
def one(run: Path) -> list[Event]:
    """The events of one repeat on the optical fabric."""
    events: list[Event] = json.loads(exported(run, "chrome-trace", "optical", 1))["traceEvents"]
    return events


def threads(events: list[Event]) -> dict[tuple[int, int], str]:
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}


def slices(events: list[Event], thread: str) -> list[Event]:
    names = threads(events)
    return [e for e in events if e["ph"] == "X" and names[e["pid"], e["tid"]] == thread]


def test_the_trace_is_as_it_was(run: Path) -> None:
    golden.check("trace.json", exported(run, "chrome-trace", "optical", 1), run)


def test_the_trace_fits_the_schema(trace: dict[str, Any]) -> None:
    schema = json.loads((FOLDER / "chrome-trace.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(trace, schema)


@pytest.mark.parametrize(
    "event",
    [
        {"name": "x", "cat": "c", "ph": "X", "ts": 0, "pid": 1, "tid": 1, "args": {}},
        {"name": "x", "cat": "c", "ph": "B", "ts": 0, "pid": 1, "tid": 1},
        {"name": "x", "cat": "c", "ph": "i", "ts": 0, "pid": 1, "tid": 1, "s": "x", "args": {}},
        {"name": "x", "cat": "c", "ph": "C", "ts": 0, "pid": 1, "args": {"Gb/s": "1"}},
        {"name": "x", "cat": "c", "ph": "s", "ts": 0, "pid": 1, "tid": 1},
    ],
    ids=["slice without duration", "unknown phase", "unknown scope", "counter of text", "arrow without id"],
)
def test_the_schema_refuses_what_viewers_would_drop(event: Event) -> None:
    schema = json.loads((FOLDER / "chrome-trace.schema.json").read_text())
    whole = {"displayTimeUnit": "ms", "otherData": {}, "traceEvents": [event]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, schema)


def test_processes_are_fabrics_and_repeats(trace: dict[str, Any]) -> None:
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert names == ["optical, repeat 1", "optical, repeat 2", "electrical, repeat 1", "electrical, repeat 2"]


def test_threads_are_phases_collectives_decisions_circuits_and_hosts(one: list[Event]) -> None:
    assert set(threads(one).values()) == {
        "phase training",
        "collectives gradients",
        "collectives weights",
        "decisions",
        "dark time",
        "circuit o0:1",
        "h0 sends",
        "h0 sends #2",
        "h0 receives",
        "h1 receives",
        "h2 sends",
        "h2 receives",
        "h3 sends",
    }


def test_time_is_in_microseconds(one: list[Event]) -> None:
    (phase,) = slices(one, "phase training")
    assert (phase["ts"], phase["dur"]) == (0.0, 200_000.0)
    assert [(e["ts"], e["dur"]) for e in slices(one, "collectives gradients")] == [
        (0.0, 10_000.0),
        (20_000.0, 40_000.0),
        (70_000.0, 20_000.0),
    ]


def test_dark_time_lies_between_what_lit_before_and_after(one: list[Event]) -> None:
    (dark,) = slices(one, "dark time")
    first, second = slices(one, "circuit o0:1")
    assert (dark["ts"], dark["dur"]) == (60_000.0, 10_000.0)
    assert first["ts"] + first["dur"] == dark["ts"]
    assert second["ts"] == dark["ts"] + dark["dur"]
    assert dark["args"]["service_dark_s"] == 0.012


def test_decisions_are_instants_and_circuits_mark_the_whole_process(one: list[Event]) -> None:
    found = [(e["name"], e["ts"], e["s"]) for e in one if e["ph"] == "i"]
    assert found == [("keep epoch 0", 55_000.0, "t"), ("dark epoch 1", 60_000.0, "p"), ("lit epoch 1", 70_000.0, "p")]


def test_slices_of_a_thread_do_not_overlap(trace: dict[str, Any]) -> None:
    by_thread: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append(event)
    for events in by_thread.values():
        ordered = sorted(events, key=lambda e: e["ts"])
        for before, after in pairwise(ordered):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-6


def test_arrows_begin_and_end_inside_a_slice_of_their_thread(one: list[Event]) -> None:
    arrows = [e for e in one if e["ph"] in "sf"]
    assert sorted(e["id"] for e in arrows if e["ph"] == "s") == sorted(e["id"] for e in arrows if e["ph"] == "f")
    assert len(arrows) == 6
    for arrow in arrows:
        holders = [e for e in one if e["ph"] == "X" and (e["pid"], e["tid"]) == (arrow["pid"], arrow["tid"])]
        assert any(e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"] for e in holders)


def test_the_load_of_a_link_is_the_sum_of_its_flows_rates(one: list[Event]) -> None:
    # 100 MB in 10 ms are 80 Gb/s; from 5 to 10 ms another 50 MB in 10 ms, 40 Gb/s, go by the same NIC.
    loads = [(e["ts"], e["args"]["Gb/s"]) for e in one if e["ph"] == "C" and e["name"] == "h0:0 -> t0:1"]
    assert loads == [(0.0, 80.0), (5_000.0, 120.0), (10_000.0, 40.0), (15_000.0, 0.0)]


def test_above_a_number_of_flows_details_are_left_out_and_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome, "MOST_DETAILED", 3)
    events = json.loads(exported(run, "chrome-trace", "optical", 1))["traceEvents"]
    assert not [e for e in events if e["ph"] in "sf"]
    assert "h1 receives" not in threads(events).values()
    assert len(slices(events, "h0 sends") + slices(events, "h0 sends #2")) == 2


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=30))
def test_lanes_hold_no_two_items_at_once_and_are_no_more_than_overlap(starts: list[tuple[int, int]]) -> None:
    spans = [(float(start), float(start + length)) for start, length in starts]
    placed = list(lanes(spans, lambda span: span))
    for lane in {lane for _, lane in placed}:
        mine = sorted(span for span, number in placed if number == lane)
        assert all(before[1] <= after[0] for before, after in pairwise(mine))
    most = max((sum(a <= at < b or a == at for a, b in spans) for at, _ in spans), default=0)
    assert len({lane for _, lane in placed}) <= most
