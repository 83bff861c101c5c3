"""The commands of `emu`, each in a module of its own.

These modules are all imported for `emu --help`, so they import nothing at their top but typer, rich and each other;
what a command works with it imports when it is called.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from emu.cli.calibrate import calibrate
from emu.cli.check import check
from emu.cli.compare import compare
from emu.cli.doctor import doctor
from emu.cli.exits import Exit
from emu.cli.export import export
from emu.cli.failures import guarded
from emu.cli.list import list_
from emu.cli.output import results
from emu.cli.predict import predict
from emu.cli.price import price
from emu.cli.report import report
from emu.cli.run import run
from emu.cli.runs import runs
from emu.cli.schema import schema
from emu.cli.shell import shell
from emu.cli.show import show
from emu.cli.sweep import sweep
from emu.cli.validate import validate

app = typer.Typer(
    help="Packet-level emulation of disaggregated RL training on reconfigurable fabrics.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(check)
app.command()(predict)
app.command()(sweep)
app.command()(validate)
app.command()(calibrate)
app.command()(shell)
app.command()(show)
app.command()(report)
app.command()(compare)
app.command()(runs)
app.command()(export)
app.command()(price)
app.command("list")(list_)
app.command()(schema)
app.command()(doctor)


def run_command(arguments: list[str]) -> int:
    """Run a command line; its exit status."""
    return guarded(lambda: app(arguments, prog_name="emu", standalone_mode=False), arguments)


def _print_version(asked: bool) -> None:
    if asked:
        from emu.results import emu_version  # noqa: PLC0415

        results().print(f"emu {emu_version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Packet-level emulation of disaggregated RL training on reconfigurable fabrics."""
    if context.invoked_subcommand is None:
        results().print(Text(context.get_help()))
        raise typer.Exit(Exit.INPUT)
