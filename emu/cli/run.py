"""`emu run`: one lab for each fabric of a scenario, what came out, and whether it can be trusted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from emu.cli.exits import OF_VERDICT, Exit
from emu.cli.lines import show_line
from emu.cli.options import Counterfactual, Debug, Json, Out, Plugins, Repeat, ScenarioFile, Seed, given
from emu.cli.output import messages, plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from emu.outcome import Outcome
    from emu.results import RunSummary


class Engine(StrEnum):
    """What moves the bytes."""

    PACKET = "packet"
    MODEL = "model"


AnyEngine = Annotated[
    Engine | None, typer.Option(help="What moves the bytes; model predicts, as `emu predict` does.", show_default=False)
]


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
    """Run a scenario and judge what came out. Needs root.

    Each of its fabrics is built as a lab of its own and the workload driven through it; the tables and the verdict are
    shown, and written with all the rest into a run directory.

    \b
    Example:
      sudo emu run scenarios/quickstart.yaml --repeat 3 --out runs/first

    Exit status: 0 VALID, 3 DEGRADED, 4 INVALID, 2 bad input, 1 other errors, 130 interrupted.
    """
    overrides = given(engine=engine and engine.value, seed=seed, repeat=repeat)
    outcome = carry_out(scenario, out=out, overrides=overrides, plugins=plugin or (), counterfactual=counterfactual)
    return show_outcome(outcome, as_json=json)


def carry_out(
    scenario: Path,
    *,
    out: Path | None,
    overrides: Mapping[str, object],
    plugins: Sequence[Path],
    counterfactual: bool = False,
) -> Outcome:
    """Run a scenario file to its end, showing how far it is on standard error, and first if the machine is busy."""
    from emu import runner  # noqa: PLC0415
    from emu.cli.busy import BusyWarning  # noqa: PLC0415
    from emu.cli.progress import display  # noqa: PLC0415

    said = messages()
    live = results().is_terminal and said.is_terminal
    with display(said, live=live) as listener, plugins_kept_apart():
        return runner.run(
            scenario,
            out=out,
            overrides=overrides,
            plugins=plugins,
            listener=BusyWarning(said, listener),
            counterfactual=counterfactual,
        )


def show_outcome(outcome: Outcome, *, as_json: bool) -> Exit:
    """Print what a run came to; its exit status, which is explained to people unless it is 0."""
    from emu.results import summarise  # noqa: PLC0415

    show_summary(summarise(outcome), as_json=as_json)
    status = Exit.INTERRUPTED if outcome.interrupted else OF_VERDICT[outcome.verdict]
    if status and not as_json:
        show_line(results(), f"exit status {status:d}: {status.name}")
    return status


def show_summary(summary: RunSummary, *, as_json: bool) -> None:
    """Print the summary of a run as JSON or in tables."""
    from emu.cli.tables import show_run  # noqa: PLC0415
    from emu.results import RunSummary  # noqa: PLC0415

    if as_json:
        write_json(summary, RunSummary)
    else:
        show_run(results(), summary)
