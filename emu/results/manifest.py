"""The manifest of a run directory: what was run, on what, how it was scaled, and whether it can be trusted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from emu.measurement import CircuitChange, CrossCheck, DataPlane, Finding, Health, LabFacts, LinkCalibration, Repeat
from emu.outcome import FabricOutcome, Outcome
from emu.results.columns import SCHEMA_VERSION, TABLES
from emu.results.phase_summary import CounterfactualSummary, summarise_counterfactual
from emu.scenario.schema import Transport
from emu.verdict.levels import Level, Verdict
from emu.versions import emu_revision, emu_version, library_versions

SCENARIO_FILE = "scenario.json"


class _Entry(BaseModel):
    """What all parts of a manifest share: immutable, documented by attribute, nothing unknown inside."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ScaleEntry(_Entry):
    """How the lab stood for the real system."""

    sigma: float
    """Bytes were divided by it."""
    beta: float
    """Rates were divided by it."""
    tdf: float
    """beta / sigma: wall seconds for each modelled second."""
    chosen: Literal["auto", "given"]
    """Whether emu or the scenario chose it; `plan` says why."""


class ChangeEntry(_Entry):
    """One change of circuits: its dark time by four measures. Modelled seconds; null is what was not measured."""

    epoch: int
    """The epoch that it led to."""
    outcome: str
    """`committed`, or `aborted: ` and why."""
    asked_dark_s: float
    """What was asked for."""
    control_dark_s: float | None
    """The control plane's: last delete sent to last barrier reply."""
    data_plane_dark_s: float | None
    """The data plane's: last frame by a circuit that goes to first frame by one that comes, at the slowest OCS."""
    service_dark_s: float | None
    """The service's: how long the affected flows stood still, the median flow."""
    transport_share_s: float | None
    """Service minus data plane."""
    data_plane: list[DataPlane]
    """By OCS, what probe frames saw; `_wall`: wall seconds."""

    @classmethod
    def of(cls, change: CircuitChange) -> ChangeEntry:
        """The entry of one change."""
        return cls(
            epoch=change.epoch,
            outcome=change.outcome,
            asked_dark_s=change.asked_dark,
            control_dark_s=change.control_dark if change.outcome == "committed" else None,
            data_plane_dark_s=change.data_plane_dark,
            service_dark_s=change.service_dark,
            transport_share_s=change.transport_share,
            data_plane=change.data_plane,
        )


class RepeatEntry(_Entry):
    """One run of the workload."""

    seed: int
    """What its random numbers were drawn from."""
    complete: bool
    """Whether the workload came to its end."""
    end_s: float
    """Modelled seconds from time zero to the end."""
    wall_s: float
    """Wall seconds that it took."""
    jumps: int
    """How often modelled time jumped over idle time."""
    jumped_s: float
    """Modelled seconds that were jumped over."""
    health: Health
    """How machine and transport did. Times in wall seconds, sizes in bytes."""
    changes: list[ChangeEntry]
    """Every change of circuits, in order."""


class CounterfactualEntry(_Entry):
    """A fabric as it is not, by the model: nothing of it is measured."""

    kind: str
    """`no dark time` (of its policy or schedule) or `no reconfiguration` (the circuits of epoch 0 hold for ever)."""
    end_s: float | None
    """Modelled seconds from time zero to the end; null if some transfer never has a path."""
    phases_s: dict[str, float | None]
    """By phase, its duration in modelled seconds; null if it could not be finished."""
    problems: dict[str, str]
    """By phase that could not be finished, why not."""

    @classmethod
    def of(cls, summary: CounterfactualSummary) -> CounterfactualEntry:
        """The entry of one counterfactual."""
        return cls(
            kind=summary.kind,
            end_s=summary.end,
            phases_s={phase.phase: phase.duration for phase in summary.phases},
            problems={phase.phase: phase.problem for phase in summary.phases if phase.problem},
        )


class FabricEntry(_Entry):
    """One fabric and its lab."""

    name: str
    """As the scenario calls it."""
    kind: str
    """Its builder."""
    parameters: dict[str, Any]
    """What the builder was called with: bit/s, seconds, bytes."""
    hosts: int
    """How many hosts it has."""
    nics: int
    """How many NICs they have together."""
    switches: int
    """Electrical packet switches, ToRs included."""
    ocses: int
    """Optical circuit switches."""
    reconfiguration_s: float
    """Dark time of a change of circuits, modelled seconds; 0 without an OCS."""
    verdict: Verdict
    """Whether this fabric's numbers can be trusted, and why not."""
    partial: bool
    """It was stopped before its end."""
    error: str
    """What ended its lab early, or empty."""
    facts: LabFacts | None
    """What the lab was; null if it was never built."""
    calibration: list[LinkCalibration]
    """Every shaped link before time zero, rates of the lab in bit/s."""
    cross_check: CrossCheck | None
    """One pair of hosts measured with iperf3 and by emu itself, payload bit/s in the lab."""
    findings: list[Finding]
    """What the lab's own checks found wrong."""
    repeats: list[RepeatEntry]
    """Every run of the workload, in order."""
    counterfactuals: list[CounterfactualEntry]
    """What the model says of the fabric as it is not, with `--counterfactual`; else, or without an OCS, nothing."""

    @classmethod
    def of(cls, outcome: FabricOutcome, kind: str) -> FabricEntry:
        """The entry of one fabric."""
        fabric, measured = outcome.built.fabric, outcome.measurement
        return cls(
            name=outcome.name,
            kind=kind,
            parameters=dict(fabric.parameters),
            hosts=len(fabric.hosts),
            nics=len(fabric.all_nics),
            switches=len(fabric.switches),
            ocses=len(fabric.ocses),
            reconfiguration_s=outcome.built.reconfiguration,
            verdict=outcome.verdict,
            partial=measured.partial,
            error=measured.error,
            facts=measured.facts,
            calibration=measured.calibration,
            cross_check=measured.cross_check,
            findings=measured.findings,
            repeats=[_repeat(repeat) for repeat in measured.repeats],
            counterfactuals=[
                CounterfactualEntry.of(summarise_counterfactual(outcome, other)) for other in outcome.counterfactuals
            ],
        )


class Manifest(_Entry):
    """manifest.json, written last: a directory that has one is whole."""

    schema_version: Literal[1]
    """Of this file and the tables beside it."""
    emu: str
    """The version that ran."""
    emu_revision: str = ""
    """What `git describe` says of the checkout that ran, `-dirty` if files were changed; empty if it was installed."""
    versions: dict[str, str] = {}
    """Of Python, the kernel, and each library that emu asks for; `facts` has those of the lab's programs."""
    name: str
    """The scenario's."""
    began: datetime
    """When the run started, UTC."""
    wall_s: float
    """Wall seconds that it took in all."""
    verdict: Level
    """The worst fabric's."""
    partial: bool
    """Some fabric is missing or was stopped before its end."""
    scenario_file: str
    """The resolved scenario, every default filled in, flow lists included."""
    scenario_hash: str
    """SHA-256 of that file."""
    seed: int
    """The scenario's."""
    repeat: int
    """How often each fabric was to run the workload."""
    engine: str
    """What moved the bytes."""
    traffic: str
    """The traffic engine in the lab."""
    scale: ScaleEntry
    """The one that all fabrics shared."""
    transport: dict[str, Any]
    """TCP's settings, times in modelled seconds; in the lab they were times TDF."""
    plan: list[str]
    """What was decided before the labs were built, a line each."""
    tables: list[str]
    """The CSV files."""
    fabrics: list[FabricEntry]
    """One for each fabric that was run, in the scenario's order."""

    @classmethod
    def of(cls, outcome: Outcome) -> Manifest:
        """The manifest of a run."""
        scenario = outcome.scenario
        kinds = {fabric.name: fabric.kind for fabric in scenario.fabrics}
        scale = outcome.scale
        return cls(
            schema_version=SCHEMA_VERSION,
            emu=emu_version(),
            emu_revision=emu_revision(),
            versions=dict(library_versions()),
            name=scenario.name,
            began=datetime.fromtimestamp(outcome.began, UTC),
            wall_s=outcome.wall,
            verdict=outcome.verdict,
            partial=_partial(outcome),
            scenario_file=SCENARIO_FILE,
            scenario_hash=scenario.hash,
            seed=scenario.seed,
            repeat=scenario.repeat,
            engine=scenario.engine,
            traffic=scenario.traffic,
            scale=ScaleEntry(sigma=scale.sigma, beta=scale.beta, tdf=scale.tdf, chosen=_chosen(outcome)),
            transport=_plain(scenario.transport),
            plan=outcome.plan,
            tables=[table.file for table in TABLES],
            fabrics=[FabricEntry.of(fabric, kinds[fabric.name]) for fabric in outcome.fabrics],
        )


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of manifest.json."""
    schema = Manifest.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "emu run manifest", **schema}


def _partial(outcome: Outcome) -> bool:
    missing = len(outcome.fabrics) < len(outcome.scenario.fabrics)
    return missing or any(fabric.measurement.partial for fabric in outcome.fabrics)


def _chosen(outcome: Outcome) -> Literal["auto", "given"]:
    return "auto" if outcome.scenario.emulation.scale == "auto" else "given"


def _plain(transport: Transport) -> dict[str, Any]:
    """Its settings as plain numbers in base units."""
    return {name: getattr(transport, name) for name in type(transport).model_fields}


def _repeat(repeat: Repeat) -> RepeatEntry:
    return RepeatEntry(
        seed=repeat.seed,
        complete=repeat.trace.complete,
        end_s=repeat.trace.end,
        wall_s=repeat.wall,
        jumps=repeat.jumps,
        jumped_s=repeat.jumped,
        health=repeat.health,
        changes=[ChangeEntry.of(change) for change in repeat.changes],
    )
