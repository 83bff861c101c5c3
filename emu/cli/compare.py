"""`emu compare`: runs of one workload side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from emu.cli.exits import OF_VERDICT, Exit
from emu.cli.grid import Field, Group, show_grid
from emu.cli.lines import show_line
from emu.cli.options import Debug, Json, Out, Plugins, Repeat, Seed, given
from emu.cli.output import results, write_json
from emu.cli.run import carry_out

if TYPE_CHECKING:
    from emu.results.comparison import Comparison, Entry, Row

What = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Run directories, or one scenario file to run first.", show_default=False),
]


def compare(
    runs: What,
    out: Out = None,
    seed: Seed = None,
    repeat: Repeat = None,
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Compare runs of one workload in one table.

    It has the time, the ideal, their ratio, the speed-up against the first row, and the verdict. A time was measured,
    or predicted by the model: then the verdict is PREDICTED. A scenario file is run first, as by `emu run` (needs
    root); its fabrics are then compared. --out, --seed, --repeat and --plugin are for that.

    \b
    Example:
      emu compare runs/monday runs/tuesday

    Exit status: 0 for run directories, of a scenario that of its run; 2 if the runs had different workloads.
    """
    if any(path.is_file() for path in runs):
        return _run_first(runs, out, given(seed=seed, repeat=repeat), plugin or [], as_json=json)
    from emu.results.comparison import compare_runs  # noqa: PLC0415

    _show(compare_runs(runs), as_json=json)
    return Exit.VALID


def _run_first(
    paths: list[Path], out: Path | None, overrides: dict[str, object], plugins: list[Path], *, as_json: bool
) -> int:
    from emu.errors import InputError  # noqa: PLC0415
    from emu.results import summarise  # noqa: PLC0415
    from emu.results.comparison import compare as compare_summaries  # noqa: PLC0415

    if len(paths) > 1:
        file = next(path for path in paths if path.is_file())
        raise InputError(f"{file} is a file", hint="give run directories, or one scenario file and nothing else")
    outcome = carry_out(paths[0], out=out, overrides=overrides, plugins=plugins)
    _show(compare_summaries([summarise(outcome)], [outcome.directory.name]), as_json=as_json)
    return Exit.INTERRUPTED if outcome.interrupted else OF_VERDICT[outcome.verdict]


def _show(found: Comparison, *, as_json: bool) -> None:
    from emu.results.comparison import Comparison  # noqa: PLC0415

    if as_json:
        write_json(found, Comparison)
    else:
        show_comparison(results(), found)


def show_comparison(console: Console, found: Comparison) -> None:
    """Print one group for each thing compared, one row for each fabric of each run in it."""
    several = len(found.runs) > 1
    groups = [Group(entry.name, [(_name(row, several), _cells(row)) for row in entry.rows]) for entry in _sorted(found)]
    if groups:
        show_line(console, f"speed-up: {_reference(found, several)} by that of the row", "dim")
        show_grid(console, "run: fabric" if several else "fabric", _FIELDS, groups)
    for note in found.notes:
        show_line(console, f"note: {note}", "yellow")


def _reference(found: Comparison, several: bool) -> str:
    """Whose time the speed-ups are held to."""
    firsts = {_name(entry.rows[0], several) for entry in found.entries}
    return f"the time of {firsts.pop()}" if len(firsts) == 1 else "the time of the first row of a group"


def _sorted(found: Comparison) -> list[Entry]:
    """The phases and the whole; collectives that are all there is of their phase would only say it again."""
    phases = {entry.name for entry in found.entries if entry.what == "phase"}
    return [entry for entry in found.entries if entry.what != "collective" or entry.name.split(":")[0] not in phases]


def _name(row: Row, several: bool) -> str:
    return f"{row.run}: {row.fabric}" if several else row.fabric


def _cells(row: Row) -> dict[str, Text]:
    from emu.cli.levels import level_text  # noqa: PLC0415

    return {
        "time": _time(row.time),
        "ideal": _time(row.ideal),
        "ratio": Text("-" if row.ratio is None else f"{row.ratio:.3f}"),
        "speed-up": Text("-" if row.speed_up is None else f"{row.speed_up:.3f}"),
        "verdict": level_text(row.verdict),
    }


def _time(seconds: float | None) -> Text:
    from emu.units import format_duration  # noqa: PLC0415

    return Text("-" if seconds is None else format_duration(seconds))


_FIELDS = (
    Field("time", 9),
    Field("ideal", 9, keep=2),
    Field("ratio", 5, keep=1),
    Field("speed-up", 8),
    Field("verdict", 9, left=True),
)
