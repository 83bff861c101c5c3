"""Changes of circuits: how fast they are committed, how dark the dark is, and whether TDF changes what flows see."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks.optics import DARKS, OCSES, PORTS, Crossing, Stage
from emu.measurement import CircuitChange
from emu.outcome import Outcome
from emu.runner import run
from emu.wire import payload_efficiency

_SEAL = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc", "--"),
)
_ROOT = Path(__file__).resolve().parents[1]

_BARRIER_MEDIAN, _BARRIER_P99 = 3e-3, 10e-3
_LAST_FRAME = 1e-3
_COMPLETION_SPREAD = 0.05

_Row = TypeVar("_Row", Stage, Crossing)


def bench_commit() -> bool:
    """COMMIT to the last barrier, 64 circuits on 4 OCSs, both stages of every change; True if within the bounds."""
    rows = _sealed("commit", Stage)
    good = True
    for name, what in (("dark", "deleted"), ("light", "added")):
        stages = [row for row in rows if row.stage == name]
        head = f"{name:5} ({OCSES * PORTS} circuits {what} on {OCSES} OCSs, {len(stages)} times)"
        barriers, skews = [row.barrier for row in stages], [row.skew for row in stages]
        good &= _bounded(f"{head}: COMMIT to last barrier, median", median(barriers), _BARRIER_MEDIAN)
        good &= _bounded(f"{head}: COMMIT to last barrier, p99", percentile(barriers, 99), _BARRIER_P99)
        print(f"{head}: skew between OCSs {_spread(skews)}")
        print(f"{head}: COMMIT after its instant {_spread([row.late for row in stages])}")
    return good


def bench_dark() -> bool:
    """How late the last frame leaves by a circuit that went dark, and dark times as asked, by control and by frames."""
    rows = _sealed("dark", Crossing)
    for asked in DARKS:
        some = [row for row in rows if round(row.asked * 1e3) == asked]
        print(
            f"dark time asked {asked} ms ({len(some)} changes): control {_spread([row.control for row in some])}, "
            f"data plane {_spread([row.plane for row in some])}"
        )
    apart = median(row.apart for row in rows)
    print(f"frames are {_ms(apart)} apart, by which what they show may be too early (last) or too late (first)")
    print(f"last frame after DARK was acknowledged: {_spread([row.last_replied for row in rows])}")
    print(f"first frame after LIGHT was sent: {_spread([row.first for row in rows])}")
    last = [row.last for row in rows]
    print(f"last frame after DARK was sent: {_spread(last)}")
    return _bounded(f"last frame after DARK was sent, median of {len(last)} changes:", median(last), _LAST_FRAME)


# -- the same flow at several dilations --------------------------------------------------------------------------------

_RATE, _SECONDS, _DARK = 400_000_000_000, 0.4, 0.01
_BETA = 20_000
_MTU = 9000
_REPEATS = 3
# The flow's circuit moves to the other uplink of the pod that receives: the hosts are apart for the dark time only.
_SCENARIO = """
emulation: {{scale: {{sigma: {sigma}, beta: {beta}}}, budget: 1h, mtu: {mtu}}}
repeat: {repeat}
fabrics:
  - kind: hybrid
    pods: 2
    hosts_per_pod: 1
    uplinks: 2
    rate: {rate}bps
    reconfiguration: {dark}s
    circuits: {{o0: [1-3]}}
    schedule: [{{at: 0.2s, circuits: {{o0: [1-4]}}}}]
workload:
  kind: flow-list
  flows: |
    src,dst,bytes
    0,1,{size}
"""


@dataclass(frozen=True)
class Served:
    """One bulk flow over one change: its completion, and the change's row. Modelled seconds."""

    completion: float
    change: CircuitChange


def bench_service() -> bool:
    """A bulk flow over one dark time at TDF 10, 20 and 40: its completion in modelled seconds must not depend on it."""
    times = {}
    for tdf in (10, 20, 40):
        outcome = _serve(tdf)
        runs = list(_served(outcome))
        if not runs:
            print(f"TDF {tdf}: nothing was measured, {outcome.verdict}: {outcome.fabrics[0].measurement.error}")
            return False
        times[tdf] = median(one.completion for one in runs)
        ideal = outcome.fabrics[0].prediction.trace.flows[0].fct
        print(f"TDF {tdf}: completion {_ms(times[tdf])} modelled, ideal {_ms(ideal)}, {outcome.verdict}")
        _print_dark_times(tdf, [one.change for one in runs], outcome.scenario.transport.rto_min)
    spread = max(times.values()) / min(times.values()) - 1
    passed = spread <= _COMPLETION_SPREAD
    print(f"completion at TDF 10, 20, 40 differs by {spread:.1%}, at most {_COMPLETION_SPREAD:.0%}: {_word(passed)}")
    return passed


def _serve(tdf: int) -> Outcome:
    size = round(_SECONDS * _RATE / 8 * payload_efficiency(_MTU))
    text = _SCENARIO.format(
        sigma=_BETA // tdf, beta=_BETA, mtu=_MTU, repeat=_REPEATS, rate=_RATE, dark=_DARK, size=size
    )
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(text)
        return run(scenario, out=Path(folder) / "run")


def _served(outcome: Outcome) -> Iterable[Served]:
    """The repeats that came to their end with their change committed."""
    for repeat in outcome.fabrics[0].measurement.repeats:
        committed = [change for change in repeat.changes if change.outcome == "committed"]
        if repeat.trace.complete and committed:
            yield Served(repeat.trace.flows[0].fct, committed[0])


def _print_dark_times(tdf: int, changes: Sequence[CircuitChange], rto_min: float) -> None:
    """The four figures and the transport's share, which need not agree: round-trip times do not dilate."""
    figures: dict[str, Callable[[CircuitChange], float | None]] = {
        "control": lambda change: change.control_dark,
        "data plane": lambda change: change.data_plane_dark,
        "service": lambda change: change.service_dark,
        "service - data plane": lambda change: change.transport_share,
    }
    texts = [f"asked {_ms(_DARK)}"]
    for name, figure in figures.items():
        values = [value for change in changes if (value := figure(change)) is not None]
        texts.append(f"{name} {_ms(median(values))} ({len(values)})" if values else f"{name} not measured")
    print(f"TDF {tdf}: dark time modelled, medians (of): {', '.join(texts)}; least RTO {_ms(rto_min * tdf)} wall")


# -- helpers -----------------------------------------------------------------------------------------------------------


def _sealed(what: str, kind: Callable[..., _Row]) -> list[_Row]:
    """Run `benchmarks.optics` in namespaces of its own."""
    command = [*_SEAL, sys.executable, "-W", "ignore", "-m", "benchmarks.optics", what]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"benchmarks.optics {what} ended with status {done.returncode}:\n{done.stderr}")
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return [kind(**row) for row in rows]


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least `share` percent of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]


def _spread(values: Sequence[float]) -> str:
    return f"median {_ms(median(values))}, p99 {_ms(percentile(values, 99))}, at most {_ms(max(values))}"


def _bounded(what: str, value: float, bound: float) -> bool:
    passed = value <= bound
    print(f"{what} {_ms(value)}, at most {_ms(bound)}: {_word(passed)}")
    return passed


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _word(passed: bool) -> str:
    return "ok" if passed else "MISSED"
