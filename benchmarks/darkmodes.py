"""What the ways through the dark cost a bulk flow and its phase, and whether a rotor that holds serves every pair."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from controllers.dark import DARK_MODES
from emu.measurement import CircuitChange, CircuitUse, Repeat
from emu.outcome import FabricOutcome, Outcome
from emu.records import FlowRecord, Trace
from emu.results.circuits import use_row
from emu.runner import run
from emu.wire import payload_efficiency

_RATE, _BETA, _MTU = 400_000_000_000, 20_000, 9000
_DARK_WALL = 0.1
"""Seconds in the lab that circuits are dark, whatever they stand for: the dilation makes 1, 10 and 100 ms of them."""
_MODELLED = (0.001, 0.01, 0.1)
_REPEATS = 2
# Three flows in a ring, each for ten dark times, are the phase. The circuit of the first moves to the other free port
# of its receiver. A small one comes when all is over, so that a change which waited for the ring is seen.
_FABRIC = """
  - name: {mode}
    kind: hybrid
    pods: 3
    hosts_per_pod: 1
    uplinks: 3
    rate: {rate}bps
    electrical_rate: {electrical}bps
    reconfiguration: {dark}s
    dark: {way}
    circuits: {{o0: [1-4, 5-7, 8-2]}}
    schedule: [{{at: {at}s, circuits: {{o0: [1-6, 5-7, 8-2]}}}}]"""
_FLOWS = """
workload:
  kind: flow-list
  flows: |
    src,dst,bytes,start
    0,1,{size},0
    1,2,{size},0
    2,0,{size},0
    0,2,{last},{later}
"""


@dataclass(frozen=True)
class Cost:
    """One mode at one dark time; medians of all repeats, times in modelled seconds, packets as counted in the lab."""

    mode: str
    dark: float
    gap: float | None
    lost: float | None
    held: float | None
    overflow: float | None
    reordered: float | None
    early: float | None
    bulk: float
    phase: float
    ideal: float
    verdict: str


def bench_darkmodes() -> bool:
    """A table of all modes at 1, 10 and 100 ms; False if a mode that loses nothing did, or a run did not end."""
    costs = [cost for dark in _MODELLED for cost in _costs(dark)]
    print(table(costs))
    kept = [cost for cost in costs if cost.mode != "drop"]
    lossless = all(cost.lost is not None and cost.lost <= 1 for cost in kept)
    whole = len(costs) == len(_MODELLED) * len(DARK_MODES)
    print(f"detour, hold and drain lose no packet: {'ok' if lossless else 'MISSED'}")
    return lossless and whole


def table(costs: Iterable[Cost]) -> str:
    """The costs as a table in Markdown."""
    head = ("dark", "mode", "service gap", "lost", "held", "reordered", "out of order", "bulk flow", "phase", "ideal")
    lines = [head, ("---",) * len(head)]
    for cost in costs:
        counts = (cost.lost, cost.held, cost.reordered, cost.early)
        times = (cost.bulk, cost.phase, cost.ideal)
        gap = "none" if cost.gap is None else _ms(cost.gap)
        lines.append((_ms(cost.dark), cost.mode, gap, *map(_count, counts), *map(_ms, times)))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _costs(dark: float) -> Iterable[Cost]:
    for fabric in _outcome(_scenario(dark)).fabrics:
        repeats = [repeat for repeat in fabric.measurement.repeats if repeat.trace.complete]
        if repeats:
            yield _cost(fabric, repeats, dark)


def _cost(fabric: FabricOutcome, repeats: Sequence[Repeat], dark: float) -> Cost:
    changes = [change for repeat in repeats for change in repeat.changes if change.outcome == "committed"]
    rings = [_ring(repeat.trace) for repeat in repeats]
    return Cost(
        mode=fabric.name,
        dark=dark,
        gap=_median(change.service_dark for change in changes),
        lost=_median(change.lost for change in changes),
        held=_median(change.held for change in changes),
        overflow=_median(change.overflow for change in changes),
        reordered=_median(change.reordered for change in changes),
        early=_median(change.out_of_order for change in changes),
        bulk=median(next(row.fct for row in ring if row.src.startswith("h0")) for ring in rings),
        phase=median(max(row.end for row in ring) for ring in rings),
        ideal=max(row.end for row in _ring(fabric.prediction.trace)),
        verdict=str(fabric.verdict.level),
    )


def _ring(trace: Trace) -> list[FlowRecord]:
    """The flows of the phase, which begins at time zero."""
    return sorted(trace.flows, key=lambda row: row.start)[:3]


def _scenario(dark: float) -> str:
    tdf = _DARK_WALL / dark
    size = round(10 * dark * _RATE / 8 * payload_efficiency(_MTU))
    ways = {"drain": f"{{mode: drain, deadline: {20 * dark}s}}"}
    fabrics = "".join(
        _FABRIC.format(
            **{"mode": mode, "rate": _RATE, "electrical": _RATE // 4, "dark": dark, "at": 4 * dark},
            way=ways.get(mode, mode),
        )
        for mode in DARK_MODES
    )
    head = f"emulation: {{scale: {{sigma: {_BETA / tdf}, beta: {_BETA}}}, budget: 1h, mtu: {_MTU}}}\nrepeat: {_REPEATS}"
    return f"name: darkmodes\n{head}\nfabrics:{fabrics}\n{_FLOWS.format(size=size, last=size // 50, later=16 * dark)}"


# -- a rotor -----------------------------------------------------------------------------------------------------------

_PERIOD, _ROTOR_DARK, _TDF, _ROTOR_BETA = 0.1, 0.01, 10, 8000
_LEAST = 0.9
_CYCLE = (4, 5, 6)
"""The epochs of the second full cycle: connections have found their rates, and none has ended."""
_ROTOR = f"""
name: rotor
emulation: {{scale: {{sigma: {_ROTOR_BETA // _TDF}, beta: {_ROTOR_BETA}}}, budget: 1h, mtu: {_MTU}}}
fabrics:
  - kind: hybrid
    pods: 4
    hosts_per_pod: 1
    uplinks: 1
    rate: {_RATE}bps
    reconfiguration: {_ROTOR_DARK}s
    dark: hold
    circuits: {{o0: [t0-t3, t1-t2]}}
    schedule:
      period: {_PERIOD}s
      matchings: [{{o0: [t0-t1, t2-t3]}}, {{o0: [t0-t2, t1-t3]}}, {{o0: [t0-t3, t1-t2]}}]
workload:
  kind: flow-list
  flows: |
    src,dst,bytes
"""


def bench_rotor() -> bool:
    """Twelve flows between all pairs of four ToRs over one rotating uplink each: what they get of their duty cycle."""
    share = round(3.2 * (_PERIOD - _ROTOR_DARK) * _RATE / 8)
    flows = "".join(f"    {src},{dst},{share}\n" for src in range(4) for dst in range(4) if src != dst)
    fabric = _outcome(_ROTOR + flows).fabrics[0]
    (repeat,) = fabric.measurement.repeats
    sigma = fabric.measurement.sigma
    served = [_payload(use, sigma) for use in repeat.circuits if use.epoch in _CYCLE and use.out_port is not None]
    bound = (_PERIOD - _ROTOR_DARK) * _RATE / 8 * payload_efficiency(_MTU)
    if len(served) != 12:
        print(f"rotor: {len(served)} of 12 circuits of a cycle were seen; {fabric.verdict.level}")
        return False
    total, least, most = sum(served) / (12 * bound), min(served) / bound, max(served) / bound
    print(
        f"rotor with hold, a cycle of {3 * _PERIOD * 1e3:g} ms, {_ROTOR_DARK * 1e3:g} ms of each {_PERIOD * 1e3:g} ms "
        f"dark: {total:.1%} of the duty cycle's bound; each of 12 pairs got {least:.1%} to {most:.1%} of its share"
    )
    lost = sum(use.lost for use in repeat.circuits)
    overflow = sum(change.overflow or 0 for change in repeat.changes)
    print(f"rotor with hold: {lost} packets lost at OCSs, {overflow} found a queue full, in {_changed(repeat)}")
    return total >= _LEAST and least >= _LEAST * _LEAST


def _payload(use: CircuitUse, sigma: float) -> int:
    return int(use_row(use, sigma)["payload_bytes"])


def _changed(repeat: Repeat) -> str:
    committed: list[CircuitChange] = [change for change in repeat.changes if change.outcome == "committed"]
    return f"{len(committed)} of {len(repeat.changes)} changes"


# -- helpers -----------------------------------------------------------------------------------------------------------


def _outcome(text: str) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(text)
        outcome = run(scenario, out=Path(folder) / "run")
    for fabric in outcome.fabrics:
        print(f"{fabric.name}: {fabric.verdict.level}: {'; '.join(map(str, fabric.verdict.reasons[:3]))}")
    return outcome


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
