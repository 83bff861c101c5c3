"""`emu check`: everything about a scenario that can be told without a lab."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from emu.cli.exits import Exit
from emu.cli.options import Debug, Json, Plugins, Repeat, ScenarioFile, Seed
from emu.cli.output import plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from emu.api import Checked


def check(
    scenario: ScenarioFile,
    seed: Seed = None,
    repeat: Repeat = None,
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Check a scenario, and say what a run of it would take.

    Nothing is built, and no root is needed: fabrics, workload and circuits are checked, the scale is chosen, and the
    wall time to expect is shown.

    \b
    Example:
      emu check scenarios/quickstart.yaml

    Exit status: 0 if it can be run here, 2 if not (the message names the line and what to write).
    """
    from emu import api  # noqa: PLC0415

    with plugins_kept_apart():
        found = api.check(scenario, seed=seed, repeat=repeat, plugins=plugin or ())
    if json:
        write_json(as_data(scenario, found))
    else:
        show_checked(results(), scenario, found)
    return Exit.VALID


def show_checked(console: Console, path: Path, found: Checked) -> None:
    """Print a scenario that can be run, its fabrics, and what a run would be."""
    from rich.text import Text  # noqa: PLC0415

    console.print(_fabrics(found))
    for line in found.lines:
        console.print(Text(line), soft_wrap=not console.is_terminal)
    console.print(Text(f"{path}: it can be run"), style="green", soft_wrap=True)


def as_data(path: Path, found: Checked) -> dict[str, Any]:
    """The same for programs."""
    scale = found.plan.scale
    return {
        "scenario": str(path),
        "name": found.scenario.name,
        "fabrics": list(_rows(found)),
        "scale": {"sigma": scale.sigma, "beta": scale.beta, "tdf": scale.tdf},
        "buckets": found.plan.buckets,
        "wall_s": found.wall_s,
        "budget_s": found.plan.budget,
        "estimates": [asdict(estimate) for estimate in found.plan.estimates],
        "plan": found.lines,
    }


def _rows(found: Checked) -> Iterator[dict[str, Any]]:
    for spec, built in zip(found.scenario.fabrics, found.fabrics, strict=True):
        fabric = built.fabric
        yield {
            "name": spec.name,
            "kind": spec.kind,
            "hosts": len(fabric.hosts),
            "nics": len(fabric.all_nics),
            "switches": len(fabric.switches),
            "ocses": len(fabric.ocses),
            "cables": len(fabric.links),
            "circuits": built.policy.name if fabric.ocses else None,
        }


def _fabrics(found: Checked) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("fabric", overflow="fold")
    table.add_column("kind", overflow="fold")
    for name in ("hosts", "NICs", "switches", "OCSs", "cables"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("circuits", overflow="fold")
    for row in _rows(found):
        counts = (str(row[name]) for name in ("hosts", "nics", "switches", "ocses", "cables"))
        table.add_row(row["name"], row["kind"], *counts, row["circuits"] or "")
    return table
