"""`emu predict`: a scenario run by the model alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emu.cli.exits import Exit
from emu.cli.options import Counterfactual, Debug, Json, Plugins, ScenarioFile, Seed, given
from emu.cli.output import messages, plugins_kept_apart, results
from emu.cli.run import show_summary

if TYPE_CHECKING:
    from emu.model.transport import Transport

AnyTransport = Annotated[
    str,
    typer.Option(
        "--transport",
        metavar="ideal|FILE",
        help="ideal shares links max-min fairly; a file has the parameters of a transport that was fitted (TOML).",
    ),
]
RunDirectory = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a run directory, new or empty.", show_default=False)
]


def predict(
    scenario: ScenarioFile,
    transport: AnyTransport = "ideal",
    out: RunDirectory = None,
    seed: Seed = None,
    counterfactual: Counterfactual = False,
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Predict a scenario by the model alone. Needs no root.

    The workload runs on each fabric in a flow-level simulation over the same routes and circuits as in a lab, so that
    thousands of GPUs take seconds. The tables are those of `emu run`, without what only a measurement can tell.

    \b
    Example:
      emu predict scenarios/rl-2048.yaml --out runs/predicted

    Exit status: 0, or 2 for bad input.
    """
    from dataclasses import replace  # noqa: PLC0415

    from emu.cli.progress import display  # noqa: PLC0415
    from emu.model.predicting import predict_scenario  # noqa: PLC0415
    from emu.results import summarise  # noqa: PLC0415
    from emu.scenario import load  # noqa: PLC0415

    said = messages()
    with display(said, live=results().is_terminal and said.is_terminal) as listener, plugins_kept_apart():
        loaded = load(scenario, plugins=plugin or (), overrides=given(seed=seed))
        outcome = predict_scenario(
            loaded,
            out=out,
            write=out is not None,
            transport=_transport(transport),
            counterfactual=counterfactual,
            listener=listener,
        )
    summary = summarise(outcome)
    show_summary(summary if out is not None else replace(summary, directory=""), as_json=json)
    return Exit.VALID


def _transport(name: str) -> Transport:
    from emu.model.transport import IDEAL, load_transport  # noqa: PLC0415

    return IDEAL if name == "ideal" else load_transport(Path(name))
