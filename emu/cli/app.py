"""The commands of `emu`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from emu.cli.check import show_check
from emu.cli.checklist import show_checks
from emu.cli.exits import OF_VERDICT, Exit
from emu.cli.failures import guarded
from emu.cli.progress import display
from emu.cli.tables import show_run
from emu.doctor import examine
from emu.outcome import Outcome
from emu.results import RunSummary, emu_version, summarise
from emu.runner import run as run_scenario

app = typer.Typer(
    help="Packet-level emulation of disaggregated RL training on reconfigurable fabrics.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_SUMMARY = TypeAdapter(RunSummary)


class Engine(StrEnum):
    """What moves the bytes."""

    PACKET = "packet"


ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Instead of the scenario's seed.", show_default=False)]
Repeat = Annotated[
    int | None, typer.Option(metavar="N", help="How often each fabric runs the workload.", show_default=False)
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE.py", help="Python file with builders; may be repeated.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Run directory, new or empty. Default: runs/NAME-DATE-TIME.", show_default=False),
]
AnyEngine = Annotated[Engine | None, typer.Option(help="What moves the bytes.", show_default=False)]
Counterfactual = Annotated[
    bool,
    typer.Option(
        "--counterfactual", help="Let the model also say what circuits would do if they changed in no time, or never."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a defect.")]


def run_command(arguments: list[str]) -> int:
    """Run a command line; its exit status."""
    return guarded(lambda: app(arguments, prog_name="emu", standalone_mode=False), arguments)


def _print_version(asked: bool) -> None:
    if asked:
        Console(highlight=False).print(f"emu {emu_version()}")
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
        Console(highlight=False).print(Text(context.get_help()))
        raise typer.Exit(Exit.INPUT)


@app.command()
def run(
    scenario: ScenarioFile,
    engine: AnyEngine = None,
    out: Out = None,
    seed: Seed = None,
    repeat: Repeat = None,
    counterfactual: Counterfactual = False,
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Run a scenario: build its fabrics, drive its traffic, judge and write what came out. Needs root.

    \b
    Example:
      sudo emu run scenarios/quickstart.yaml --repeat 3 --out runs/first

    Exit status: 0 VALID, 3 DEGRADED, 4 INVALID, 2 bad input, 1 other errors, 130 interrupted.
    """
    overrides = _overrides(engine=engine and engine.value, seed=seed, repeat=repeat)
    console = Console(highlight=False)
    messages = Console(stderr=True, highlight=False)
    live = console.is_terminal and messages.is_terminal
    # What a plugin prints must not get between a script and the summary.
    with display(messages, live=live) as listener, redirect_stdout(sys.stderr):
        outcome = run_scenario(
            scenario,
            out=out,
            overrides=overrides,
            plugins=plugin or (),
            listener=listener,
            counterfactual=counterfactual,
        )
    _show(console, outcome, as_json=json)
    return Exit.INTERRUPTED if outcome.interrupted else OF_VERDICT[outcome.verdict]


@app.command()
def check(
    scenario: ScenarioFile,
    seed: Seed = None,
    repeat: Repeat = None,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Check a scenario without building anything, and say what a run of it would take.

    \b
    Example:
      emu check scenarios/quickstart.yaml
    """
    show_check(Console(highlight=False), scenario, _overrides(seed=seed, repeat=repeat), plugin or ())
    return Exit.VALID


@app.command()
def doctor(debug: Debug = False) -> int:
    """Probe everything that a lab needs of this machine; each failure comes with its fix.

    \b
    Example:
      sudo emu doctor

    Exit status: 0 if labs can run here, else 1.
    """
    return show_checks(Console(highlight=False), examine())


def _overrides(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the options' types are
    return {name: value for name, value in options.items() if value is not None}


def _show(console: Console, outcome: Outcome, *, as_json: bool) -> None:
    summary = summarise(outcome)
    if as_json:
        sys.stdout.write(_SUMMARY.dump_json(summary, indent=2).decode() + "\n")
    else:
        show_run(console, summary)
