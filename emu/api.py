"""emu as a library: run and check scenarios, and read what came out.

    import emu

    record = emu.run("scenarios/quickstart.yaml", repeat=3)
    print(record.verdict, record.phases[["fabric", "phase", "duration_s", "ideal_s"]])

Nothing here needs a terminal or prints. A run needs root, as on the command line; checking and reading do not. All
errors are `emu.EmuError`: `emu.InputError` for a scenario, option or directory that cannot be used as it is, and
`emu.LabError` for what the machine lacks; each is one message that says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.errors import InputError
from emu.lab.delays import check_delays
from emu.plan import Plan, describe, plan
from emu.progress import Listener, silent
from emu.results.record import RunRecord
from emu.runner import run_scenario
from emu.scenario import BuiltFabric, Scenario, build_fabrics
from emu.scenario import load as load_file
from emu.scenario.load import load_data, load_text

ScenarioLike = str | os.PathLike[str] | Mapping[str, Any]
"""A scenario file's path; YAML text (a `str` with a line break); a mapping as YAML would give it."""
Plugins = Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario that can be run, and what a run of it would be.

    scenario: with every default filled in. fabrics: as they would be built. plan: the scale, and the wall time to
    expect; with `scale: auto` for a typical machine, since none was measured.
    """

    scenario: Scenario
    fabrics: tuple[BuiltFabric, ...]
    plan: Plan

    @property
    def wall_s(self) -> float:
        """Wall seconds that the run is expected to take."""
        return self.plan.total

    @property
    def lines(self) -> list[str]:
        """The plan for people: scale and why, merged messages, wall time, notes."""
        return describe(self.plan)


def run(
    scenario: ScenarioLike,
    *,
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    plugins: Plugins = (),
    counterfactual: bool = False,
    listener: Listener = silent,
) -> RunRecord:
    """Run a scenario to its end and return its record. Needs root; takes from seconds to minutes.

    scenario: a path, YAML text (with a line break), or a mapping.
    out: the run directory, new or empty (default: a new one under `runs/`).
    seed, repeat: instead of the scenario's. overrides: other values, by dotted key: `{"emulation.mtu": 1500}`.
    plugins: Python files that register builders. counterfactual: let the model also say what circuits would do if they
    changed in no time, or never.
    listener: called with an `emu.progress.Progress` at every step, in this thread; it must be quick.

    Raises InputError for a scenario that cannot be run, and LabError for what the machine lacks, before anything is
    built. What goes wrong inside a lab does not raise: it is in the record's verdict. Ctrl-C (and, in the main thread,
    SIGTERM and SIGHUP) ends the run: what was measured until then is written, and KeyboardInterrupt raised.
    """
    loaded = _loaded(scenario, plugins, _overrides(overrides, seed=seed, repeat=repeat))
    outcome = run_scenario(
        loaded,
        out=None if out is None else Path(out),
        plugins=tuple(Path(plugin) for plugin in plugins),
        listener=listener,
        counterfactual=counterfactual,
    )
    if outcome.interrupted:
        raise KeyboardInterrupt(f"the run was interrupted; what was measured is in {outcome.directory}")
    return RunRecord.load(outcome.directory)


def check(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    repeat: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    plugins: Plugins = (),
) -> Checked:
    """Check a scenario without building a lab, and say what a run of it would take. Needs no root.

    Arguments as for `run`. Raises InputError for whatever would keep it from running here: mistakes in the file,
    fabrics that cannot be wired, link delays that this machine cannot make, workloads that can never end, a budget that
    it does not fit.
    """
    loaded = _loaded(scenario, plugins, _overrides(overrides, seed=seed, repeat=repeat))
    built = tuple(build_fabrics(loaded))
    check_delays(loaded, built)
    return Checked(loaded, built, plan(loaded, built, [], loaded.seed))


def load(run_directory: str | os.PathLike[str]) -> RunRecord:
    """The record of a run that was made before. Raises InputError for a directory that holds no whole run."""
    return RunRecord.load(Path(run_directory))


def _overrides(given: Mapping[str, Any] | None, **options: int | None) -> dict[str, Any]:
    return {**(given or {}), **{name: value for name, value in options.items() if value is not None}}


def _loaded(scenario: ScenarioLike, plugins: Plugins, overrides: Mapping[str, Any]) -> Scenario:
    if isinstance(scenario, Mapping):
        return load_data(scenario, plugins, overrides)
    if isinstance(scenario, str) and "\n" in scenario:
        return load_text(scenario, plugins, overrides)
    if isinstance(scenario, str | os.PathLike):
        return load_file(scenario, plugins, overrides)
    hint = "give a path, YAML text or a mapping"
    raise InputError(f"{type(scenario).__name__} is no scenario", hint=hint)
