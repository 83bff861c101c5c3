"""Packet runs read back from their directories, as validation and calibration need them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emu.errors import InputError
from emu.lab.delays import delays_made
from emu.model.ideal import Prediction, ideal
from emu.model.transport import Transport
from emu.queues import decision_leads
from emu.results.columns import CIRCUITS, COLLECTIVES, PHASES, Table, Value
from emu.results.directory import read_manifest, read_rows
from emu.results.manifest import SCENARIO_FILE, Manifest
from emu.scale import Scale
from emu.scenario.build import BuiltFabric, build_fabrics, cluster_of
from emu.scenario.schema import Scenario
from emu.scenario.traffic import build_orchestrator
from emu.wire import payload_efficiency

Rows = list[dict[str, Value]]
_MERGED = re.compile(r"^merged: .* layer buckets into (\d+)$")
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A packet run, and what it takes to predict it again."""

    directory: Path
    scenario: Scenario
    manifest: Manifest
    built: tuple[BuiltFabric, ...]

    @classmethod
    def load(cls, directory: Path) -> HeldRun:
        """The run in a directory.

        Raises InputError for a directory without a whole run, one of which nothing was measured, and a scenario that
        cannot be built here (by an unknown plugin, say).
        """
        manifest = read_manifest(directory)
        if manifest.engine != "packet":
            raise InputError(f"{directory} was predicted, nothing in it is measured", hint="name runs of emu run")
        try:
            scenario = Scenario.from_json((directory / SCENARIO_FILE).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{directory} is no whole run directory: {SCENARIO_FILE}: {error.strerror}") from error
        except ValidationError as error:
            problem = f"{directory / SCENARIO_FILE}: {error.errors()[0]['msg']}"
            raise InputError(problem, hint="give the plugins that it was run with") from error
        measured = {fabric.name for fabric in manifest.fabrics}
        built = tuple(one for one in build_fabrics(scenario) if one.fabric.name in measured)
        return cls(directory, scenario, manifest, built)

    # -- what it was ----------------------------------------------------------------------------------------------

    @property
    def scale(self) -> Scale:
        """What stood between the modelled system and the lab."""
        return Scale(self.manifest.scale.sigma, self.manifest.scale.beta)

    @property
    def buckets(self) -> int | None:
        """Into how many collectives the plan merged layer gradients at most; None: it merged none."""
        found = (match for line in self.manifest.plan if (match := _MERGED.match(line)))
        return next((int(match[1]) for match in found), None)

    @property
    def workload(self) -> str:
        """A digest of the workload: equal for runs of one workload, whatever their fabrics, seeds and scales."""
        return _digest(json.loads(self.scenario.to_json())["workload"])

    def fabric_digest(self, name: str) -> str:
        """A digest of a fabric, by what the scenario says of it; what it is called does not count."""
        data = json.loads(self.scenario.to_json())["fabrics"]
        (entry,) = (entry for entry in data if entry["name"] == name)
        return _digest({key: value for key, value in entry.items() if key != "name"})

    # -- what was measured ------------------------------------------------------------------------------------------

    def collectives(self) -> Rows:
        """The rows of collectives.csv."""
        return self._rows(COLLECTIVES)

    def phases(self) -> Rows:
        """The rows of phases.csv."""
        return self._rows(PHASES)

    def circuits(self) -> Rows:
        """The rows of circuits.csv."""
        return self._rows(CIRCUITS)

    def _rows(self, table: Table) -> Rows:
        return read_rows(self.directory / table.file, table)

    # -- what the model says --------------------------------------------------------------------------------------

    def predict(self, built: BuiltFabric, transport: Transport) -> Prediction:
        """The run on one of its fabrics by the model of today, merged and decided as early as in its lab.

        transport: in modelled seconds, as for this run's scale.
        """
        cluster, scenario = cluster_of(built.fabric), self.scenario
        leads = decision_leads(built.fabric, built.dark, scenario.emulation, self.scale)
        conditions = replace(
            built.conditions(scenario.seed, payload_efficiency(scenario.emulation.mtu), *leads),
            delays=delays_made(built.fabric),
            transport=transport,
        )
        orchestrator = build_orchestrator(scenario, cluster, seed=scenario.seed, buckets=self.buckets)
        return ideal(built.fabric, orchestrator, cluster, conditions, whole=True)


@dataclass(frozen=True, slots=True)
class Group:
    """Measured times that belong together: a phase, or the collectives of one step and size, on one fabric of a run.

    kind: `collective` or `phase`. name: of the step or phase. what: algorithm and collective, "" of a phase.
    sizes: S of the collectives, bytes. times: measured seconds, each with the id of what took them.
    """

    run: HeldRun
    fabric: str
    kind: str
    name: str
    what: str
    sizes: frozenset[int]
    times: tuple[tuple[str, float], ...]

    def ratios(self, prediction: Prediction) -> list[float]:
        """Measured by predicted, of all that the prediction has a time for."""
        known = prediction.cct if self.kind == "collective" else prediction.phases
        return [seconds / known[one] for one, seconds in self.times if known.get(one, 0.0) > 0]


def groups_of(run: HeldRun, *, by_size: bool) -> Iterator[Group]:
    """What was measured in a run, collectives first. by_size: one group for each size of a step, not for all."""
    found: dict[tuple[Any, ...], list[dict[str, Value]]] = {}
    for row in run.collectives():
        size = row["bytes"] if by_size else 0
        found.setdefault((row["fabric"], row["label"], f"{row['algorithm']} {row['kind']}", size), []).append(row)
    for (fabric, label, what, _), rows in found.items():
        sizes = frozenset(int(row["bytes"] or 0) for row in rows)
        yield Group(run, fabric, "collective", label, what, sizes, _times(rows, "id", "cct_s"))
    phases: dict[tuple[Any, ...], list[dict[str, Value]]] = {}
    for row in run.phases():
        phases.setdefault((row["fabric"], row["phase"]), []).append(row)
    for (fabric, phase), rows in phases.items():
        yield Group(run, fabric, "phase", phase, "", frozenset(), _times(rows, "phase", "duration_s"))


def _times(rows: Sequence[dict[str, Value]], name: str, seconds: str) -> tuple[tuple[str, float], ...]:
    return tuple((str(row[name]), float(row[seconds] or 0.0)) for row in rows)


def _digest(value: Any) -> str:  # noqa: ANN401 - JSON
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
