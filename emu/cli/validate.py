"""`emu validate`: what was measured by what the model predicts, over a suite of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from emu.cli.exits import Exit
from emu.cli.options import Debug, Json, Plugins
from emu.cli.output import messages, plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from emu.validate.report import Line, Spread

Suite = Annotated[
    list[Path],
    typer.Argument(
        metavar="SCENARIO|RUN...", help="Scenario files to run first, or run directories.", show_default=False
    ),
]
FittedFile = Annotated[
    Path | None,
    typer.Option(
        "--transport", metavar="FILE", help="Also show a transport that emu calibrate fitted.", show_default=False
    ),
]
Parent = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where scenarios are run, a directory for each.")]


def validate(
    suite: Suite,
    transport: FittedFile = None,
    out: Parent = Path("runs"),
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Hold packet runs against the model: measured by predicted, with spread, for each collective, phase and fabric.

    Scenario files are run first, as by `emu run` (needs root). The ideal transport comes first; a fitted one stands
    beside it only where workload, fabric and sizes are all others than those that it was fitted on. Nothing is judged
    here: the verdict that is shown is the run's own, by the ideal alone.

    \b
    Example:
      emu validate runs/first runs/second --transport here.toml

    Exit status: 0; 2 for bad input, 130 interrupted.
    """
    from emu.cli.progress import display  # noqa: PLC0415
    from emu.scenario import load_plugins  # noqa: PLC0415
    from emu.validate.fitted import read_fitted  # noqa: PLC0415
    from emu.validate.report import Line  # noqa: PLC0415
    from emu.validate.report import validate as hold  # noqa: PLC0415

    fitted = None if transport is None else read_fitted(transport)
    load_plugins(plugin or ())
    directories, interrupted = _run_scenarios(suite, out, plugin or ())
    if interrupted:
        return Exit.INTERRUPTED
    said = messages()
    with display(said, live=results().is_terminal and said.is_terminal) as listener, plugins_kept_apart():
        lines = hold(directories, fitted, listener)
    if json:
        write_json(lines, list[Line])
    else:
        show_lines(results(), lines, fitted=fitted is not None)
    return Exit.VALID


def _run_scenarios(suite: Sequence[Path], out: Path, plugins: Sequence[Path]) -> tuple[list[Path], bool]:
    """The run directory of each member of the suite, scenarios run; and whether that was interrupted."""
    from emu.cli.run import carry_out  # noqa: PLC0415

    found = []
    for member in suite:
        if not member.is_file():
            found.append(member)
            continue
        outcome = carry_out(
            member, out=out / f"validate-{member.stem}", overrides={"engine": "packet"}, plugins=plugins
        )
        if outcome.interrupted:
            return found, True
        found.append(outcome.directory)
    return found, False


def show_lines(console: Console, lines: Sequence[Line], *, fitted: bool) -> None:
    """Print collectives by algorithm and phases by run, a row for each fabric; and how many are close."""
    from emu.cli.grid import Field, Group, show_grid  # noqa: PLC0415
    from emu.cli.lines import show_line  # noqa: PLC0415
    from emu.validate.report import CLOSE  # noqa: PLC0415

    fields = [Field("n", 4, keep=3), Field("ideal", 6), Field("min", 6, keep=1), Field("max", 6, keep=1)]
    if fitted:
        fields += [Field("fitted", 6), Field("f. min", 6, keep=2), Field("f. max", 6, keep=2)]
    fields += [Field("verdict", 8, left=True)]
    groups: dict[str, list[tuple[str, dict[str, Text]]]] = {}
    for line in lines:
        groups.setdefault(_heading(line), []).append((line.fabric, _cells(line)))
    if groups:
        show_grid(console, "fabric", fields, [Group(heading, rows) for heading, rows in groups.items()])
    for kind, bound in CLOSE.items():
        known = [line.close for line in lines if line.kind == kind and line.close is not None]
        show_line(
            console, f"{sum(known)} of {len(known)} {kind}s are within {bound:.0%} of the ideal, by their median."
        )


def _heading(line: Line) -> str:
    return f"{line.run}, {line.name}: {line.what}" if line.kind == "collective" else f"{line.run}, phase {line.name}"


def _cells(line: Line) -> dict[str, Text]:
    from emu.cli.levels import level_text  # noqa: PLC0415

    return {
        "n": Text(str(line.count)),
        **dict(zip(("ideal", "min", "max"), _ratios(line.ideal), strict=True)),
        **dict(zip(("fitted", "f. min", "f. max"), _ratios(line.fitted), strict=True)),
        "verdict": level_text(line.verdict),
    }


def _ratios(spread: Spread | None) -> list[Text]:
    if spread is None:
        return [Text("-")] * 3
    return [Text(f"{value:.3f}") for value in (spread.median, spread.lowest, spread.highest)]
