"""`emu runs`: which runs there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from emu.cli.exits import Exit
from emu.cli.lines import show_columns
from emu.cli.options import Debug, Json
from emu.cli.output import messages, results, write_json

if TYPE_CHECKING:
    from emu.results.listing import ListedRun

Parent = Annotated[Path, typer.Argument(metavar="DIR", help="Where the run directories are.")]


def runs(directory: Parent = Path("runs"), json: Json = False, debug: Debug = False) -> int:
    """List run directories, oldest first.

    Shown are when each began, its scenario and fabrics, and its verdict. One that still runs or was killed is shown as
    unfinished.

    \b
    Example:
      emu runs

    Exit status: 0, or 2 if there is no such directory.
    """
    from emu.results.listing import ListedRun, list_runs  # noqa: PLC0415

    found = list_runs(directory)
    if json:
        write_json(found, list[ListedRun])
    elif found:
        show_runs(results(), found)
    else:
        messages().print(Text(f"There is no run in {directory}."))
    return Exit.VALID


def show_runs(console: Console, found: list[ListedRun]) -> None:
    """Print one line for each run, and below them what keeps one from being read."""
    header = ("began", "run", "scenario", "fabrics", "verdict")
    show_columns(console, [_cells(run) for run in found], header)
    for run in found:
        if run.problem:
            messages().print(Text(run.problem), soft_wrap=True)


def _cells(run: ListedRun) -> tuple[Text, ...]:
    began = run.began.astimezone().strftime("%Y-%m-%d %H:%M")
    fabrics = ", ".join(name for name, _ in run.fabrics)
    return Text(began), Text(run.directory), Text(run.name), Text(fabrics), _verdict(run)


def _verdict(run: ListedRun) -> Text:
    from emu.cli.levels import level_text  # noqa: PLC0415

    if run.verdict is None:
        return Text(run.state, style="yellow" if run.state == "unfinished" else "red")
    return level_text(run.verdict) + Text(" (partial)" if run.state == "partial" else "")
