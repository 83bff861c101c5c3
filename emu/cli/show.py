"""`emu show`: the tables of a run directory, as `emu run` printed them."""

from __future__ import annotations

from emu.cli.exits import Exit
from emu.cli.options import Debug, Json, RunDirectory
from emu.cli.run import show_summary


def show(run: RunDirectory, json: Json = False, debug: Debug = False) -> int:
    """Show a run again, as `emu run` printed it.

    \b
    Example:
      emu show runs/quickstart-20261201-101500

    Exit status: 0, whatever the run's verdict; 2 if the directory holds no whole run.
    """
    from emu.results import read_summary  # noqa: PLC0415

    show_summary(read_summary(run), as_json=json)
    return Exit.VALID
