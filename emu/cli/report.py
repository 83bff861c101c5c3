"""`emu report`: one HTML file for a run, or for several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emu.cli.exits import Exit
from emu.cli.options import Debug
from emu.cli.output import results

RunDirectories = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Run directories, as `emu run` wrote them.", show_default=False)
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The HTML file. Default: report.html in the run directory; comparison.html here, of several runs.",
        show_default=False,
    ),
]


def report(run: RunDirectories, out: ReportFile = None, debug: Debug = False) -> int:
    """Draw a run, or several side by side, as one HTML file that needs no network.

    `emu run` writes the report of its own run already: this draws it again, or compares.

    \b
    Example:
      emu report runs/first runs/second --out both.html

    Exit status: 0; 2 if a directory holds no whole run; 1 if the file cannot be written.
    """
    from emu.report import REPORT_FILE, write_report  # noqa: PLC0415

    target = out or (run[0] / REPORT_FILE if len(run) == 1 else Path("comparison.html"))
    results().print(str(write_report(run, target)), soft_wrap=True, markup=False)
    return Exit.VALID
