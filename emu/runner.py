"""A whole run: read the scenario, find the scale, open one lab for each fabric, judge and write what came out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from emu import captures
from emu.counterfactual import counterfactuals
from emu.errors import EmuError, InputError, one_line
from emu.interrupts import Interrupts
from emu.lab.delays import check_delays, delays_made
from emu.lab.errors import LabError
from emu.lab.job import CAPACITY, LOG, MEASUREMENT, Job, read_capacity
from emu.lab.rooms import HostRoom, Room
from emu.measurement import Capacity, Measurement
from emu.model.ideal import Prediction, ideal
from emu.model.predicting import predict_scenario
from emu.outcome import FabricOutcome, Outcome
from emu.plan import Plan, describe, plan
from emu.plan.planning import FEWEST_BUCKETS
from emu.plan.work import bucket_floor, work_of
from emu.progress import Listener, Progress, silent
from emu.queues import decision_leads
from emu.report import REPORT_FILE, write_report
from emu.results import create_directory, write_run
from emu.results.directory import give_to_caller
from emu.scale import Scale
from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.scenario.load import load
from emu.scenario.schema import Scenario
from emu.scenario.sweep_spec import check_single
from emu.scenario.traffic import build_orchestrator
from emu.verdict import judge
from emu.wire import payload_efficiency


def run(
    path: Path,
    *,
    out: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    plugins: Sequence[Path] = (),
    listener: Listener = silent,
    counterfactual: bool = False,
) -> Outcome:
    """Run a scenario file to its end and write its run directory.

    out: the run directory (default: a new one under `runs/`). overrides: top-level keys that replace the file's.
    plugins: Python files that register builders. listener: hears the progress. counterfactual: let the model also say
    what fabrics with circuits would do if those changed in no time, or never.

    Raises InputError for a scenario that cannot be run, LabError where the machine lacks something, before anything is
    built. What goes wrong inside a lab, or with one of several, is in the outcome's measurements and verdict. Ctrl-C,
    SIGTERM and SIGHUP (in the main thread) end the run: what was measured until then is written, and the outcome says
    `interrupted`; one that comes while results are written only says so. Before any lab measures, they raise
    KeyboardInterrupt.
    """
    scenario = load(path, plugins=plugins, overrides=overrides)
    return run_scenario(scenario, out=out, plugins=plugins, listener=listener, counterfactual=counterfactual)


def run_scenario(
    scenario: Scenario,
    *,
    out: Path | None = None,
    plugins: Sequence[Path] = (),
    listener: Listener = silent,
    counterfactual: bool = False,
) -> Outcome:
    """Run a scenario that is loaded already; see `run`. plugins: those that it was loaded with."""
    check_single(scenario.sweep, scenario.error)
    if scenario.engine == "model":
        return predict_scenario(scenario, out=out, counterfactual=counterfactual, listener=listener)
    built = build_fabrics(scenario)
    check_delays(scenario, built)
    _check_workload(scenario, built)
    room = HostRoom()
    room.check(out or Path.cwd())
    directory = create_directory(scenario, out)
    files = tuple(str(plugin.resolve()) for plugin in plugins)
    return _Run(scenario, built, directory, files, listener, room, counterfactual).go()


def predict(
    scenario: Scenario, built: BuiltFabric, *, seed: int, buckets: int | None, scale: Scale | None = None
) -> Prediction:
    """The ideal run of a scenario's workload on one of its fabrics.

    scale: of the lab that should change circuits as early before they are needed; None: decisions take no time.
    """
    cluster = cluster_of(built.fabric)
    leads = decision_leads(built.fabric, built.dark, scenario.emulation, scale) if scale is not None else ()
    conditions = replace(
        built.conditions(scenario.seed, payload_efficiency(scenario.emulation.mtu), *leads),
        delays=delays_made(built.fabric),
    )
    return ideal(built.fabric, build_orchestrator(scenario, cluster, seed=seed, buckets=buckets), cluster, conditions)


def _check_workload(scenario: Scenario, built: Sequence[BuiltFabric]) -> None:
    """See every fabric's workload through to its end in the model: what does not fit is refused before any lab."""
    for fabric in built:
        work_of(scenario, fabric, scenario.seed, bucket_floor(scenario, FEWEST_BUCKETS))


class _ListenerError(Exception):
    """The listener raised `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass
class _Run:
    scenario: Scenario
    built: Sequence[BuiltFabric]
    directory: Path
    plugins: tuple[str, ...]
    listener: Listener
    room: Room
    counterfactual: bool = False
    began: float = field(default_factory=time.time)
    interrupts: Interrupts = field(default_factory=Interrupts)

    def go(self) -> Outcome:
        """Plan, measure, judge, write; an interrupt or defect while labs run loses nothing of what was measured."""
        started = time.monotonic()
        measured: dict[str, Measurement] = {}
        try:
            with self.interrupts:
                chosen = self._planned()
                trouble = self._measure_all(chosen, measured)
                with self.interrupts.held():
                    outcome = self._judge(chosen, measured, self.interrupts.heard, time.monotonic() - started)
                    write_run(outcome)
                    self._report()
                if trouble is not None:
                    raise trouble
        except _ListenerError as error:
            raise error.cause from None
        return replace(outcome, interrupted=self.interrupts.heard)

    def _measure_all(self, chosen: Plan, measured: dict[str, Measurement]) -> Exception | None:
        """Measure every fabric, unless interrupted. Returns what stopped it, which is to be raised in the end.

        A lab that cannot be opened costs its own fabric only. Raises LabError if none could be: nothing was measured.
        """
        refused: list[EmuError] = []
        try:
            for place in range(len(self.built)):
                if not self.interrupts.heard:
                    self._measure(place, chosen, measured, refused)
            self._say(Progress("write", f"{self.directory}"))
        except KeyboardInterrupt:
            self.interrupts.heard = True
        except Exception as error:  # a defect, or the listener's
            return error
        if len(refused) == len(self.built):
            give_to_caller(self.directory)
            raise refused[0]
        return None

    def _report(self) -> None:
        """Draw the report. The run is whole without one, so whatever keeps it from being drawn is only told."""
        try:
            write_report([self.directory], self.directory / REPORT_FILE)
            give_to_caller(self.directory)
        except Exception as error:
            again = f"`emu report {self.directory}` tries again"
            self._say(Progress("report", one_line(f"none was written: {type(error).__name__}: {error}; {again}")))

    def _say(self, progress: Progress) -> None:
        """Tell the listener, and keep what it raises apart from what a lab does."""
        try:
            self.listener(progress)
        except Exception as error:
            raise _ListenerError(error) from error

    # -- the scale ---------------------------------------------------------------

    def _planned(self) -> Plan:
        """The plan; without one nothing was measured, and only the log of a lab that failed is worth a directory."""
        try:
            return self._plan()
        except (KeyboardInterrupt, InputError):
            self._discard()
            raise
        except EmuError:
            give_to_caller(self.directory)
            raise

    def _plan(self) -> Plan:
        capacities = []
        if self.scenario.emulation.scale == "auto":
            capacities = [self._capacity(place) for place in range(len(self.built))]
        chosen = plan(self.scenario, self.built, capacities, self.scenario.seed)
        for line in describe(chosen):
            self._say(Progress("plan", line))
        return chosen

    def _capacity(self, place: int) -> Capacity:
        folder = self._folder(place)
        job = Job("capacity", self.scenario.to_json(), place, self.plugins, room=self.room.name)
        self.room.run(job, folder, self._say)
        if not (folder / CAPACITY).exists():
            raise EmuError(f"{self._trouble(folder)}; its log is {folder / LOG}")
        capacity = read_capacity(folder / CAPACITY)
        (folder / CAPACITY).unlink()
        return capacity

    # -- the labs -----------------------------------------------------------------

    def _measure(self, place: int, chosen: Plan, into: dict[str, Measurement], refused: list[EmuError]) -> None:
        name, folder = self.built[place].fabric.name, self._folder(place)
        job = Job(
            stage="measure",
            scenario=self.scenario.to_json(),
            fabric=place,
            plugins=self.plugins,
            sigma=chosen.scale.sigma,
            beta=chosen.scale.beta,
            buckets=chosen.buckets,
            seeds=(self.scenario.seed,) * self.scenario.repeat,
            room=self.room.name,
        )
        error = ""
        try:
            self.room.run(job, folder, self._say)
        except (EmuError, OSError) as caught:
            failure = caught if isinstance(caught, EmuError) else LabError(f"no lab could be opened: {caught}")
            refused.append(failure)
            error = str(failure)
        finally:
            with self.interrupts.held():
                into[name] = self._collect(name, folder, chosen, error)

    def _collect(self, name: str, folder: Path, chosen: Plan, error: str) -> Measurement:
        """What a lab left; `error`: why it could not be opened, if so."""
        captures.collect(folder, self.directory, name)
        path = folder / MEASUREMENT
        if not path.exists():
            empty = Measurement(name, chosen.scale.sigma, chosen.scale.beta)
            empty.partial, empty.error = True, error or self._trouble(folder)
            return empty
        measurement = Measurement.read(path)
        measurement.fabric = name
        measurement.error = measurement.error or error
        path.unlink()
        return measurement

    def _discard(self) -> None:
        """Nothing was measured: leave no run directory that looks as if."""
        shutil.rmtree(self.directory / "labs", ignore_errors=True)
        with suppress(OSError):
            self.directory.rmdir()

    def _folder(self, place: int) -> Path:
        folder = self.directory / "labs" / self.built[place].fabric.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @staticmethod
    def _trouble(folder: Path) -> str:
        """Why a lab gave nothing back, as far as it said so."""
        path = folder / MEASUREMENT
        if path.exists():
            return Measurement.read(path).error
        log = folder / LOG
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
        lines = [line for line in said if "|INFO|" not in line]
        return f"the lab ended early: {lines[-1]}" if lines else "the lab was ended before it measured anything"

    # -- the judgement -----------------------------------------------------------------

    def _judge(self, chosen: Plan, measured: Mapping[str, Measurement], interrupted: bool, wall: float) -> Outcome:
        outcomes = []
        for built in self.built:
            measurement = measured.get(built.fabric.name)
            if measurement is not None:
                outcomes.append(self._outcome(built, measurement, chosen))
        return Outcome(
            directory=self.directory,
            scenario=self.scenario,
            scale=chosen.scale,
            fabrics=outcomes,
            plan=describe(chosen),
            interrupted=interrupted,
            began=self.began,
            wall=wall,
        )

    def _outcome(self, built: BuiltFabric, measurement: Measurement, chosen: Plan) -> FabricOutcome:
        predicting = partial(
            predict,
            self.scenario,
            seed=self.scenario.seed,
            buckets=chosen.buckets,
            scale=chosen.scale,
        )
        prediction = predicting(built)
        others = counterfactuals(built, predicting) if self.counterfactual else ()
        return FabricOutcome(built, prediction, measurement, judge(measurement, prediction), others)
