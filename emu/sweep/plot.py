"""A sweep as one HTML page that needs no network: times over one parameter, a line for each fabric, and the table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from emu.errors import EmuError
from emu.report.shapes import Json, script_json, short
from emu.sweep.points import Engine, short_name
from emu.sweep.table import TABLE_FILE, Cell
from emu.units import UnitError, format_duration, parse_duration, parse_rate, parse_size
from emu.versions import emu_version

PLOT_FILE: Final = "sweep.html"
Kind = Literal["seconds", "rate", "size", "number", "words"]
_PARSERS: Final = (("seconds", parse_duration), ("rate", parse_rate), ("size", parse_size))


def write_plot(cells: Sequence[Cell], directory: Path, title: str, engine: Engine) -> Path:
    """Write the page of a sweep into its directory, and return where it is. Raises EmuError if it cannot be written."""
    text = page(cells, title, engine)
    path = directory / PLOT_FILE
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise EmuError(f"cannot write {path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    return path


def page(cells: Sequence[Cell], title: str, engine: Engine) -> str:
    """The HTML of a sweep's page."""
    html: str = (
        _environment()
        .get_template("sweep.html")
        .render(
            title=title,
            engine=engine,
            parameters=[short_name(key) for key in cells[0].values] if cells else [],
            rows=[_shown(cell) for cell in cells],
            table=TABLE_FILE,
            version=emu_version(),
            style=Markup(_shared("style.css")),
            plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),
            scripts=[Markup(_shared("base.js")), Markup(_own("sweep.js"))],
            data=Markup(script_json(plot_data(cells))),
        )
    )
    return html


def plot_data(cells: Sequence[Cell]) -> Json:
    """What the page draws: for each phase and line (a fabric and the values of the other parameters) its points."""
    if not cells:
        return {"axis": "", "kind": "words", "phases": [], "series": [], "lines": {}}
    axis = _axis(cells)
    kind, _ = scale_of([cell.values[axis] for cell in cells])
    labels = list(dict.fromkeys(_label(cell, axis) for cell in cells))
    phases = list(dict.fromkeys(cell.phase for cell in cells))
    return {
        "axis": short_name(axis),
        "kind": kind,
        "phases": phases,
        "series": [{"label": label} for label in labels],
        "lines": {
            phase: [_line(cells, axis, phase, place, label) for place, label in enumerate(labels)] for phase in phases
        },
    }


def scale_of(values: Sequence[Any]) -> tuple[Kind, list[Any]]:
    """What kind of values these are, and each on an axis of that kind: a number, or its text."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "number", list(values)
    for kind, parse in _PARSERS:
        with suppress(UnitError):
            return kind, [parse(value) for value in values]  # type: ignore[return-value]
    return "words", [str(value) for value in values]


def _axis(cells: Sequence[Cell]) -> str:
    """The parameter with the most values, quantities before words."""

    def weight(key: str) -> tuple[bool, int]:
        values = [cell.values[key] for cell in cells]
        return scale_of(values)[0] != "words", len(set(map(str, values)))

    return max(cells[0].values, key=weight)


def _label(cell: Cell, axis: str) -> str:
    others = [f"{short_name(key)} {value}" for key, value in cell.values.items() if key != axis]
    return ", ".join([cell.fabric, *others])


def _line(cells: Sequence[Cell], axis: str, phase: str, place: int, label: str) -> Json:
    mine = [cell for cell in cells if cell.phase == phase and _label(cell, axis) == label]
    kind, at = scale_of([cell.values[axis] for cell in mine]) if mine else ("words", [])
    if kind != "words":
        order = sorted(range(len(mine)), key=lambda row: at[row])
        mine, at = [mine[row] for row in order], [at[row] for row in order]
    return {
        "series": place,
        "x": at,
        "median": [short(cell.median) for cell in mine],
        "low": [short(cell.lowest) for cell in mine],
        "high": [short(cell.highest) for cell in mine],
        "text": [f"{short_name(axis)} {cell.values[axis]}: {format_duration(cell.median)}" for cell in mine],
    }


def _shown(cell: Cell) -> Mapping[str, Any]:
    return {
        "values": [str(value) for value in cell.values.values()],
        "fabric": cell.fabric,
        "phase": cell.phase,
        "median": format_duration(cell.median),
        "low": format_duration(cell.lowest),
        "high": format_duration(cell.highest),
        "changes": f"{cell.changes:g}",
        "verdict": cell.verdict,
    }


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("emu.sweep"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shared(name: str) -> str:
    """What looks and works here as in the report of a run."""
    return (files("emu.report") / "templates" / name).read_text(encoding="utf-8")


def _own(name: str) -> str:
    return (files("emu.sweep") / "templates" / name).read_text(encoding="utf-8")
