"""Several runs of one workload side by side: phase by phase and collective by collective, each against the first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from emu.errors import InputError, dotted
from emu.results.manifest import SCENARIO_FILE
from emu.results.rows import ratio
from emu.results.stored_summary import read_summary
from emu.results.summary import CollectiveSummary, FabricSummary, RunSummary
from emu.units import format_size
from emu.verdict.levels import Level

WHOLE = "all phases"
_UNCOMPARED = ("name", "seed", "repeat", "fabrics", "workload")
"""What two runs that are compared may differ in anyhow; `workload` is checked by itself."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fabric of one run. time: measured, or predicted where the verdict is PREDICTED. Modelled seconds.

    speed_up: the first row's time by this one's.
    """

    run: str
    fabric: str
    time: float | None
    ideal: float | None
    ratio: float | None
    speed_up: float | None
    verdict: Level | Literal["PREDICTED"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is compared. what: `phase`, `whole` (from time zero to the end) or `collective`."""

    what: str
    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Entries in the order of the first run. notes: what else differs between the runs, a line each."""

    runs: tuple[str, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Point:
    """One time of one fabric, before it is compared."""

    run: str
    fabric: FabricSummary
    time: float | None
    ideal: float | None
    predicted: bool


def compare_runs(directories: Sequence[Path]) -> Comparison:
    """The runs in these directories. Raises InputError for one that holds no whole run, or of another workload."""
    summaries = [read_summary(directory) for directory in directories]
    scenarios = [_scenario(directory) for directory in directories]
    for directory, scenario in zip(directories[1:], scenarios[1:], strict=True):
        _check_workload(directories[0], scenarios[0], directory, scenario)
    names = _names(directories)
    return compare(summaries, names, list(_notes(names, scenarios, summaries)))


def compare(summaries: Sequence[RunSummary], names: Sequence[str], notes: Sequence[str] = ()) -> Comparison:
    """Runs of one workload, called by these names; the first fabric of the first run is what others are held to."""
    groups: dict[tuple[str, str], list[_Point]] = {}
    for name, summary in zip(names, summaries, strict=True):
        for fabric in summary.fabrics:
            for key, point in _points(name, fabric, summary.engine == "model"):
                groups.setdefault(key, []).append(point)
    order = {"phase": 0, "whole": 1, "collective": 2}
    entries = [Entry(what, title, _rows(points)) for (what, title), points in groups.items()]
    predicted = [
        f"{name} was predicted by the model, nothing in it was measured"
        for name, summary in zip(names, summaries, strict=True)
        if summary.engine == "model"
    ]
    entries.sort(key=lambda entry: order[entry.what])
    return Comparison(tuple(names), tuple(entries), (*predicted, *notes))


def _points(run: str, fabric: FabricSummary, predicted: bool) -> Iterator[tuple[tuple[str, str], _Point]]:
    for phase in fabric.phases:
        yield ("phase", phase.phase), _Point(run, fabric, phase.duration, phase.ideal, predicted)
    if fabric.end is not None:
        yield ("whole", WHOLE), _Point(run, fabric, fabric.end, fabric.ideal_end, predicted)
    for row in fabric.collectives:
        yield ("collective", _title(row)), _Point(run, fabric, row.cct, row.ideal, predicted)


def _title(row: CollectiveSummary) -> str:
    """The same for the same work: two fabrics may take different algorithms, or merge differently."""
    name = row.label if row.phase in ("", row.label) else f"{row.phase}, {row.label}"
    return f"{name}: {row.kind} of {row.ranks} ranks, {format_size(row.bytes)}"


def _rows(points: Sequence[_Point]) -> tuple[Row, ...]:
    first = points[0].time
    return tuple(
        Row(
            run=point.run,
            fabric=point.fabric.name,
            time=point.time,
            ideal=point.ideal,
            ratio=None if point.time is None else ratio(point.time, point.ideal),
            speed_up=first / point.time if first and point.time else None,
            verdict="PREDICTED" if point.predicted else point.fabric.verdict.level,
        )
        for point in points
    )


# -- whether they can be compared ------------------------------------------------------------------------------------


def _scenario(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / SCENARIO_FILE).read_bytes())
    except OSError as error:
        raise InputError(f"{directory} is no whole run directory: {SCENARIO_FILE}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{directory / SCENARIO_FILE}: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{directory / SCENARIO_FILE} holds no scenario")
    return found


def _check_workload(one: Path, first: Mapping[str, Any], other: Path, second: Mapping[str, Any]) -> None:
    difference = next(_differences(first.get("workload"), second.get("workload"), ("workload",)), None)
    if difference is not None:
        key, here, there = difference
        problem = f"{one} and {other} ran different workloads: {dotted(key)} is {_shown(here)} and {_shown(there)}"
        raise InputError(problem, hint="compare runs of one workload")


def _differences(
    one: Any,  # noqa: ANN401 - JSON
    other: Any,  # noqa: ANN401 - JSON
    key: tuple[str | int, ...] = (),
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Where two JSON values differ: the innermost places, with both values (None where there is none)."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            yield from _differences(one.get(name), other.get(name), (*key, name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, pair in enumerate(zip(one, other, strict=True)):
            yield from _differences(*pair, (*key, place))
    elif one != other:
        yield key, one, other


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _notes(
    names: Sequence[str], scenarios: Sequence[Mapping[str, Any]], summaries: Sequence[RunSummary]
) -> Iterator[str]:
    """What else differs, against the first run."""
    first, scale = scenarios[0], (summaries[0].sigma, summaries[0].beta)
    for name, scenario, summary in zip(names[1:], scenarios[1:], summaries[1:], strict=True):
        for key in (key for key in first if key not in _UNCOMPARED):
            for place, here, there in _differences(first[key], scenario.get(key), (key,)):
                yield f"{names[0]} has {dotted(place)}: {_shown(here)}, {name} has {_shown(there)}"
        if (summary.sigma, summary.beta) != scale:
            here, there = (f"sigma {sigma:g}, beta {beta:g}" for sigma, beta in (scale, (summary.sigma, summary.beta)))
            yield f"{names[0]} was scaled by {here}, {name} by {there}"


def _names(directories: Sequence[Path]) -> list[str]:
    """The last part of each path; of one that shares it with another, as many parts as tell them apart."""
    whole = [directory.resolve().parts for directory in directories]
    return [
        _tail(parts, [other for other in whole if other != parts]) if whole.count(parts) == 1 else str(directory)
        for directory, parts in zip(directories, whole, strict=True)
    ]


def _tail(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    counts = range(1, len(parts) + 1)
    count = next((n for n in counts if all(other[-n:] != parts[-n:] for other in others)), len(parts))
    return str(Path(*parts[-count:]))
