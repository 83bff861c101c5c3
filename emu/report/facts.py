"""What was run, on what, and how the lab stood for the real system: short, and side by side for several runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from emu.report import words
from emu.report.series import Run, Series
from emu.results.manifest import FabricEntry, Manifest
from emu.units import format_rate

_CHOSEN: Final = {"auto": "chosen by emu", "given": "given by the scenario"}
_PLANNED: Final = "transport: "
"""How the line of a predicted run's plan begins that says what the model took for the transport."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: what, and for each run its value. differs: the runs do not agree."""

    what: str
    values: Sequence[str]

    @property
    def differs(self) -> bool:
        """Whether the runs have different values."""
        return len(set(self.values)) > 1


def facts(runs: Sequence[Run]) -> list[Fact]:
    """The lines of the table."""
    manifests = [run.record.manifest for run in runs]
    rows: list[tuple[str, Callable[[Manifest], str]]] = [
        ("scenario", lambda m: f"{m.name} ({m.scenario_hash[:12]})"),
        ("engine", _engine),
        ("when", lambda m: f"{m.began:%Y-%m-%d %H:%M} UTC, {words.duration(m.wall_s)} of wall time"),
        ("seed, repeats", lambda m: f"{m.seed}, {m.repeat}"),
        ("scale", _scale),
        ("time", _time),
        ("transport", _transport),
        ("lab", _lab),
        ("versions", _versions),
    ]
    found = [Fact(what, [value(m) for m in manifests]) for what, value in rows]
    return [fact for fact in found if set(fact.values) != {words.NONE}]


@dataclass(frozen=True, slots=True)
class FabricFact:
    """One fabric: what it is made of."""

    place: int
    label: str
    kind: str
    parts: str
    parameters: str


def fabric_facts(series: Sequence[Series]) -> list[FabricFact]:
    """What every fabric is made of."""
    return [
        FabricFact(one.place, one.label, one.entry.kind, _parts(one.entry), _parameters(one.entry)) for one in series
    ]


def _parts(entry: FabricEntry) -> str:
    nics = "" if entry.nics == entry.hosts else f" with {entry.nics} NICs"
    parts = [f"{entry.hosts} hosts{nics}", f"{entry.switches} packet switches"]
    if entry.ocses:
        parts.append(f"{entry.ocses} OCS{'s' if entry.ocses > 1 else ''}")
        parts.append(f"{words.duration(entry.reconfiguration_s)} dark for a change")
    return ", ".join(parts)


def _parameters(entry: FabricEntry) -> str:
    """Those that were set, rates for people."""
    shown = []
    for name, value in entry.parameters.items():
        if value is None or isinstance(value, dict | list):
            continue
        shown.append(f"{name} {_value(name, value)}")
    return ", ".join(shown)


def _value(name: str, value: object) -> str:
    if isinstance(value, int | float) and name.endswith("rate"):
        return format_rate(value)
    return words.duration(value) if isinstance(value, float) and name.endswith("delay") else str(value)


def _engine(manifest: Manifest) -> str:
    return "model: predicted, nothing was measured" if _model(manifest) else f"packet, traffic by {manifest.traffic}"


def _model(manifest: Manifest) -> bool:
    """Whether the model made the run, which has no scale, no TCP and no lab."""
    return manifest.engine == "model"


def _time(manifest: Manifest) -> str:
    tdf = manifest.scale.tdf
    return words.NONE if _model(manifest) else f"one modelled second took {tdf:g} s (TDF {tdf:g})"


def _scale(manifest: Manifest) -> str:
    if _model(manifest):
        return words.NONE
    scale = manifest.scale
    return f"bytes by {scale.sigma:g} (sigma), rates by {scale.beta:g} (beta), {_CHOSEN[scale.chosen]}"


def _transport(manifest: Manifest) -> str:
    if _model(manifest):
        told = (line.removeprefix(_PLANNED) for line in manifest.plan if line.startswith(_PLANNED))
        return "; ".join(told) or words.NONE
    given = manifest.transport
    known = {
        "cc": f"TCP {given.get('cc')}",
        "rto_min": f"smallest RTO {words.duration(given.get('rto_min'))}",
        "initcwnd": f"initial window {given.get('initcwnd')}",
    }
    idle = "slow start after idle" if given.get("slow_start_after_idle") else "no slow start after idle"
    return ", ".join([*(text for name, text in known.items() if name in given), idle])


def _lab(manifest: Manifest) -> str:
    if _model(manifest):
        return words.NONE
    known = [entry.facts for entry in manifest.fabrics if entry.facts is not None]
    if not known:
        return "none was built"
    lab = known[0]
    return f"room {lab.room}, {lab.datapath} datapath, MTU {lab.mtu}, socket buffers {lab.socket_buffers}"


def _versions(manifest: Manifest) -> str:
    known = [entry.facts for entry in manifest.fabrics if entry.facts is not None]
    versions = known[0].versions if known else {}
    return ", ".join([f"emu {manifest.emu}", *(f"{name} {version}" for name, version in versions.items())])
