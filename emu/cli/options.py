"""Options and arguments that several commands share, so that each is named and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)]
RunDirectory = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run directory, as `emu run` wrote it.", show_default=False)
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Instead of the scenario's seed.", show_default=False)]
Repeat = Annotated[
    int | None, typer.Option(metavar="N", help="How often each fabric runs the workload.", show_default=False)
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Python file with fabrics, policies or workloads; may be repeated.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Run directory, new or empty. Default: runs/NAME-DATE-TIME.", show_default=False),
]
Counterfactual = Annotated[
    bool,
    typer.Option(
        "--counterfactual", help="Let the model also say what circuits would do if they changed in no time, or never."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a defect.")]


def given(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the options' types are
    """The options that the user gave: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}
