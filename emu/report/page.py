"""The page: everything that a report shows, put into one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from emu.report.budget import Budget, views
from emu.report.collectives import collective_rows, sweeps
from emu.report.completions import completions
from emu.report.darkness import dark_points, dark_rows, unsuccessful
from emu.report.decided import decisions
from emu.report.drawing import draw, wired
from emu.report.facts import fabric_facts, facts
from emu.report.modelled import counterfactual_rows
from emu.report.phases import phase_bars
from emu.report.series import Run, Series, phase_order
from emu.report.shapes import Json, script_json
from emu.report.timeline import timeline
from emu.report.verdicts import cards
from emu.report.wires import circuit_rows, link_rows, link_spread
from emu.results.wiring import StoredFabric
from emu.verdict.levels import worst
from emu.verdict.thresholds import THRESHOLDS

SCRIPTS: Final = ("base.js", "tables.js", "fabric.js", "timeline.js", "charts.js", "main.js")
"""Of the page, in the order in which they run; each adds to the object `report`."""

PREDICTED: Final = "PREDICTED"
"""What stands in place of a verdict where the model made every run."""


def page(runs: Sequence[Run], series: Sequence[Series]) -> str:
    """The HTML of a report on some runs and all their fabrics."""
    known = {run.place: wired(run) for run in runs}
    wirings = {one.place: _wiring(one, known[one.run.place]) for one in series}
    rows, more = collective_rows(series)
    circuits, more_circuits = circuit_rows(series, wirings)
    decided, more_decided = decisions(series)
    bars, one_scale = phase_bars(series)
    measured, predicted = ([run for run in runs if run.predicted is wanted] for wanted in (False, True))
    html: str = _template().render(
        title=runs[0].label if len(runs) == 1 else f"comparison of {len(runs)} runs",
        runs=runs,
        level=worst(run.record.verdict for run in measured) if measured else PREDICTED,
        made=_made(measured, predicted),
        measured=measured,
        predicted=predicted,
        partial=any(run.record.manifest.partial for run in runs),
        cards=cards(series),
        facts=facts(runs),
        fabrics=fabric_facts(series),
        phases=bars,
        one_scale=one_scale,
        others=counterfactual_rows(series),
        optical=any(one.entry.ocses for one in series),
        collectives=rows,
        bounds=THRESHOLDS.completion,
        more_collectives=more,
        links=link_rows(series),
        circuits=circuits,
        more_circuits=more_circuits,
        dark=dark_rows(series),
        decided=decided,
        more_decided=more_decided,
        unsuccessful=unsuccessful(series),
        style=Markup(_text("style.css")),
        plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),
        scripts=[Markup(_text(name)) for name in SCRIPTS],
        data=Markup(script_json(_data(series, known, wirings))),
    )
    return html


def _made(measured: Sequence[Run], predicted: Sequence[Run]) -> str:
    """How the numbers of a report came about, as its sentences say it."""
    if measured and predicted:
        return "measured or predicted"
    return "predicted" if predicted else "measured"


def _data(
    series: Sequence[Series], known: dict[int, dict[str, StoredFabric] | str], wirings: dict[int, StoredFabric | None]
) -> Json:
    """What the page's scripts draw."""
    phases, shown = phase_order(series), views(series)
    budget = Budget.of(len(shown))
    return {
        "series": [{"label": one.label} for one in series],
        "phases": phases,
        "views": [
            {
                "series": one.place,
                "label": one.label,
                "repeat": repeat,
                "fabric": draw(one, repeat, known[one.run.place], budget),
                "timeline": timeline(one, repeat, wirings[one.place], phases, budget),
            }
            for one, repeat in shown
        ],
        "completions": completions(series),
        "sweeps": sweeps(series),
        "links": link_spread(series, wirings),
        "dark": dark_points(series),
    }


def _wiring(one: Series, known: dict[str, StoredFabric] | str) -> StoredFabric | None:
    return None if isinstance(known, str) else known.get(one.name)


@cache
def _template() -> Any:  # noqa: ANN401 - jinja2's templates are untyped where they are rendered
    environment = Environment(
        loader=PackageLoader("emu.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


@cache
def _text(name: str) -> str:
    return (files("emu.report") / "templates" / name).read_text(encoding="utf-8")
