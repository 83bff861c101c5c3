"""`emu check`: everything about a scenario that can be told without a lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emu.plan import describe, plan
from emu.scenario import BuiltFabric, Scenario, build_fabrics, build_orchestrator, cluster_of, load


def show_check(console: Console, path: Path, overrides: Mapping[str, Any], plugins: Sequence[Path]) -> None:
    """Read a scenario, build its fabrics and workload, plan its run, and print what that gives.

    Raises InputError for whatever would keep it from running on any machine.
    """
    scenario = load(path, plugins=plugins, overrides=overrides)
    built = build_fabrics(scenario)
    for fabric in built:
        build_orchestrator(scenario, cluster_of(fabric.fabric), seed=scenario.seed)
    planned = plan(scenario, built, [], scenario.seed)
    console.print(_fabrics(scenario, built))
    for line in describe(planned):
        console.print(Text(line), soft_wrap=not console.is_terminal)
    console.print(Text(f"{path}: it can be run"), style="green", soft_wrap=True)


def _fabrics(scenario: Scenario, built: Sequence[BuiltFabric]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("fabric", overflow="fold")
    table.add_column("kind", overflow="fold")
    for name in ("hosts", "NICs", "switches", "OCSs", "cables"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("circuits", overflow="fold")
    for spec, one in zip(scenario.fabrics, built, strict=True):
        fabric = one.fabric
        counts = (fabric.hosts, fabric.all_nics, fabric.switches, fabric.ocses, fabric.links)
        policy = one.policy.name if fabric.ocses else ""
        table.add_row(spec.name, spec.kind, *(str(len(things)) for things in counts), policy)
    return table
