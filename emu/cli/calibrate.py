"""`emu calibrate`: the parameters of a TCP-like transport, from packet runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emu.cli.exits import Exit
from emu.cli.options import Debug, Plugins
from emu.cli.output import messages, plugins_kept_apart, results

if TYPE_CHECKING:
    from emu.validate.fitted import FittedTransport

RunDirectories = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run directories of packet runs.", show_default=False)
]
ParameterFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="The parameter file to write (TOML).")]


def calibrate(
    run: RunDirectories, out: ParameterFile = Path("transport.toml"), plugin: Plugins = None, debug: Debug = False
) -> int:
    """Fit the model's TCP-like transport to packet runs.

    Efficiency, the cost of a message, slow start and recovery after dark time are fitted by least squares; the file has
    them with date, machine, and what they were fitted on. `emu predict --transport FILE` takes it, and `emu validate
    --transport FILE` shows how far it holds where it was not fitted. Verdicts never use it.

    \b
    Example:
      emu calibrate runs/first runs/second --out here.toml

    Exit status: 0, or 2 for directories that hold no packet run or too few collectives.
    """
    from emu.cli.progress import display  # noqa: PLC0415
    from emu.scenario import load_plugins  # noqa: PLC0415
    from emu.validate.calibrate import calibrate as fit  # noqa: PLC0415
    from emu.validate.fitted import write_fitted  # noqa: PLC0415

    said = messages()
    with display(said, live=results().is_terminal and said.is_terminal) as listener, plugins_kept_apart():
        load_plugins(plugin or ())
        fitted = fit(run, listener)
    write_fitted(fitted, out)
    _show(fitted, out)
    return Exit.VALID


def _show(fitted: FittedTransport, out: Path) -> None:
    """Print the parameters with their errors, and how near they come."""
    from emu.cli.lines import show_line  # noqa: PLC0415
    from emu.units import format_duration  # noqa: PLC0415

    console, transport, fit = results(), fitted.transport, fitted.fit
    tdf = fit.beta / fit.sigma
    show_line(console, f"efficiency      {transport.efficiency:.4f} +- {fit.errors['efficiency']:.4f}")
    for name in ("message", "round_trip"):
        value, error = getattr(transport, name), fit.errors[name]
        wall = f"{format_duration(value * tdf)} in the lab"
        text = f"{format_duration(value)} +- {format_duration(error)} modelled, {wall}"
        show_line(console, f"{name:<15} {text}")
    source = f"fitted to {fit.recovery} changes of circuits" if fit.recovery else "as the runs were set to, not fitted"
    show_line(console, f"retransmission  {format_duration(transport.retransmission)} modelled, {source}")
    near = f"{fit.points} medians, off by {fit.residual:.2%} (root mean square; the ideal: {fit.before:.2%})"
    show_line(console, f"fitted to       {near}")
    show_line(console, str(out))
