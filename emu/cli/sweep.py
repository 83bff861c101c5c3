"""`emu sweep`: a scenario with a `sweep:`, all its points, one table and one plot."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emu.cli.exits import OF_VERDICT, Exit
from emu.cli.options import Debug, Json, Plugins, ScenarioFile
from emu.cli.output import messages, plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from emu.sweep.running import Result
    from emu.sweep.table import Cell


class SweepEngine(StrEnum):
    """What runs each point."""

    MODEL = "model"
    PACKET = "packet"


AnyEngine = Annotated[
    SweepEngine, typer.Option(help="model predicts on all processors; packet measures in labs and needs root.")
]
SweepDirectory = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The sweep's directory. Default: runs/NAME-sweep; points in it are kept.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Points predicted at once. Default: one for each processor.", show_default=False
    ),
]


def sweep(
    scenario: ScenarioFile,
    engine: AnyEngine = SweepEngine.MODEL,
    out: SweepDirectory = None,
    jobs: Jobs = None,
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Run a scenario with every combination of the values in its sweep.

    Each point has a run directory below the sweep's, named by the hash of its scenario. A sweep that was stopped goes
    on where it was when the same command is given again; points of a scenario that was changed are run anew.
    sweep.csv has a row for each point, fabric and phase; sweep.html draws them.

    \b
    Example:
      emu sweep scenarios/sweep-reconfiguration.yaml --out runs/reconfiguration

    Exit status: 0; of labs that of the worst verdict; 1 if a point failed, 2 for bad input.
    """
    from emu.cli.progress import display  # noqa: PLC0415
    from emu.scenario import load  # noqa: PLC0415
    from emu.sweep.points import points  # noqa: PLC0415
    from emu.sweep.running import run_sweep  # noqa: PLC0415
    from emu.sweep.store import Store  # noqa: PLC0415

    said = messages()
    with display(said, live=results().is_terminal and said.is_terminal) as listener, plugins_kept_apart():
        loaded = load(scenario, plugins=plugin or ())
        found = points(loaded, engine.value)
        store = Store.open(out or Path("runs") / f"{loaded.name}-sweep")
        done = run_sweep(found, store, engine.value, jobs=jobs, plugins=plugin or (), listener=listener)
    return _conclude(store.directory, loaded.name, engine, done, as_json=json)


def _conclude(directory: Path, name: str, engine: SweepEngine, done: Sequence[Result], *, as_json: bool) -> Exit:
    """Write table and plot, show the table, and say what failed; the exit status."""
    from emu.sweep.plot import write_plot  # noqa: PLC0415
    from emu.sweep.table import Cell, cells_of, rows_of, write_table  # noqa: PLC0415

    rows = rows_of(done)
    cells = cells_of(rows)
    written = [write_table(rows, directory), write_plot(cells, directory, name, engine.value)]
    if as_json:
        write_json(cells, list[Cell])
    else:
        _show(cells, engine, done, written)
    if any(result.problem for result in done):
        return Exit.ERROR
    return max((OF_VERDICT[row.verdict] for row in rows), default=Exit.VALID)


def _show(cells: Sequence[Cell], engine: SweepEngine, done: Sequence[Result], written: Sequence[Path]) -> None:
    from emu.cli.lines import show_line  # noqa: PLC0415
    from emu.cli.sweep_tables import show_sweep  # noqa: PLC0415

    console = results()
    show_sweep(console, cells, measured=engine is SweepEngine.PACKET)
    for result in done:
        if result.problem:
            show_line(console, f"failed: {result.point.title}: {result.problem}", "red")
    kept = sum(result.kept for result in done)
    how = "Measured" if engine is SweepEngine.PACKET else "Predicted by the model, nothing is measured"
    show_line(console, f"{how}: {len(done)} points, {kept} of which were there. Times are modelled.", "dim")
    for path in written:
        show_line(console, str(path))
