"""The model at scale: time, memory and growth of predictions, each in a process of its own on one core. Needs no root.

Seconds are of processor time, so that they mean the same on a busy machine. A message is one that the workload's
collectives consist of, whether it was simulated or its collective ran whole.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from emu.model.engine import simulate
from emu.model.predicting import predict_fabric
from emu.scenario.build import build_fabrics, cluster_of
from emu.scenario.load import load_text
from topologies.fat_tree import fat_tree
from workloads.protocol import Action, Collective, Event, Run, Start

_MIB = 1024
"""KiB, as getrusage counts, in a MiB."""
_SCENARIO = """
fabrics:
  - {{name: one, {fabric}}}
workload:
  kind: rl-iteration
  model: Qwen2.5-72B
  mode: one-step-async
  training: 0-{last_training}
  generation: {first_generation}-{last}
  forward: 1s
  backward: 2s
  optimizer: 200ms
  decode: {{tp: 16, batch: 128, steps: 64, step: 20ms, rounds: 2}}
  tail: {{tp: 32, requests: 32, tokens: 2048, steps: 96, step: 12ms, rounds: 1}}
  afd: none
  weight_sync: {{algorithm: two-level, chunks: 64, pod: 64}}
"""
_FABRICS = {
    "fat-tree": "kind: fat-tree, hosts: {hosts}, nics: 8",
    "rail": "kind: rail, hosts: {hosts}",
    "rfabric": "kind: rfabric, training_pods: {pods}, generation_pods: {others}, nics: 8, reconfiguration: 10ms",
}


@dataclass(frozen=True)
class Result:
    """What one case took: processor seconds and MiB; and what it predicted, seconds."""

    seconds: float
    mebibytes: float
    messages: int
    instants: int
    predicted: float


class _Once:
    """Runs one collective."""

    def __init__(self, collective: Collective) -> None:
        self._collective = collective

    def on(self, event: Event, now: float) -> list[Action]:
        """Run it at the start."""
        return [Run(self._collective)] if isinstance(event, Start) else []


def ring_case(ranks: int) -> Result:
    """A ring all-reduce of 1 GB over hosts of 8 NICs on a fat-tree; building it is in the time."""
    began = time.process_time()
    fabric = fat_tree(hosts=ranks // 8, nics=8)
    collective = Collective("ring", "all-reduce", "ring", tuple(range(ranks)), 10**9)
    outcome = simulate(fabric, _Once(collective), cluster_of(fabric), whole=True)
    effort = outcome.effort
    return _result(began, effort.messages, effort.instants, outcome.trace.end)


def iteration_case(fabric: str, ranks: int) -> Result:
    """One RL iteration of Qwen2.5-72B, a quarter of the GPUs training; reading and building the scenario included."""
    began = time.process_time()
    sizes = {"hosts": ranks // 8, "pods": ranks // 128, "others": 3 * ranks // 128}
    text = _SCENARIO.format(
        fabric=_FABRICS[fabric].format(**sizes),
        last_training=ranks // 4 - 1,
        first_generation=ranks // 4,
        last=ranks - 1,
    )
    scenario = load_text(text)
    prediction = predict_fabric(scenario, build_fabrics(scenario)[0])
    effort = prediction.effort
    return _result(began, effort.messages, effort.instants, prediction.trace.end)


def bench_model() -> bool:
    """Print one line a case; True if all are within their bounds."""
    ring = _apart("ring", "2048")
    expected = 2 * 2047 / 2048 * 8e9 / 400e9
    exact = abs(ring.predicted / expected - 1) <= 1e-3
    good = _line("ring all-reduce of 2048 ranks", ring, 2, 500)
    print(f"  by its closed form: {ring.predicted / expected:.6f}, {_word(exact)}")
    good &= exact
    for fabric in _FABRICS:
        results = {ranks: _apart("iteration", fabric, str(ranks)) for ranks in (128, 256, 512, 1024, 2048, 4096)}
        for ranks, result in results.items():
            bounds = {1024: (20, 4096), 2048: (60, 4096)}.get(ranks, (math.inf, math.inf))
            good &= _line(f"iteration of {ranks} GPUs on {fabric}", result, *bounds)
        growth = math.log(results[4096].seconds / results[128].seconds, 4096 / 128)
        good &= growth < 2
        print(f"  grows with the power {growth:.2f} of the GPUs, less than 2: {_word(growth < 2)}")
    return good


def _apart(*arguments: str) -> Result:
    """Run one case in a process of its own, so that its memory is its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.model", *arguments]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Result(**json.loads(done.stdout))


def _result(began: float, messages: int, instants: int, predicted: float) -> Result:
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    return Result(seconds, memory, messages, instants, predicted)


def _line(name: str, result: Result, seconds: float, mebibytes: float) -> bool:
    good = result.seconds < seconds and result.mebibytes < mebibytes
    rate = result.messages / result.seconds
    bound = "" if math.isinf(seconds) else f", below {seconds} s and {mebibytes} MiB: {_word(good)}"
    print(
        f"{name:36} {result.seconds:7.2f} s {result.mebibytes:6.0f} MiB {result.messages:11} messages "
        f"{rate:10.3g}/s, {result.instants} instants, predicts {result.predicted:.4g} s{bound}"
    )
    return good


def _word(passed: bool) -> str:
    return "ok" if passed else "MISSED"


def main(arguments: list[str]) -> None:
    """Run one case and print its result as JSON."""
    kind, *rest = arguments
    result = ring_case(int(rest[0])) if kind == "ring" else iteration_case(rest[0], int(rest[1]))
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main(sys.argv[1:])
