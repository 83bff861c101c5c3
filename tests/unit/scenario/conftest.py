"""A scenario that uses every part of the schema, and a way to spoil one place of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from emu.errors import InputError
from emu.scenario import Scenario, load

VALID = """\
name: example
seed: 7
repeat: 2
engine: packet
traffic: flows
emulation:
  scale: {sigma: 400, beta: 8000}
  budget: 90s
  mtu: 1500
  queue: 16MiB
  delay: best-effort
  datapath: user
  small_messages: send
  room: host
transport: {cc: reno, rto_min: 2ms, slow_start_after_idle: true, initcwnd: 4}
fabrics:
  - kind: fat-tree
    k: 4
    rate: 100Gbps
    delay: 1.5us
  - name: optical
    kind: hybrid
    pods: 4
    uplinks: 2
    reconfiguration: 10ms
    circuits: {o0: [t0-t1, t1-t2, t2-t3, t3-t0]}
    schedule:
      - {at: 700ms, circuits: {o0: [t0-t1, t0-t2, t1-t3]}}
      - {at: 800ms, circuits: {o0: [t0-t1, t1-t2, t2-t3, t3-t0]}}
workload:
  kind: collectives
  model: Qwen3-8B
  dtype: bf16
  steps:
    - {name: gradients, phase: training, collective: all-reduce, algorithm: ring, size: layer-gradients, buckets: 4}
    - {name: pause, compute: 100ms}
    - {name: weights, phase: weight-sync, collective: broadcast, algorithm: chain, size: weights, root: 0, at: 750ms}
    - name: sweep
      collective: all-gather
      sweep: {from: 1MiB, to: 16MiB, factor: 4}
      ranks: 0-7,12
      order: random
      after: [gradients, pause]
      repeat: 3
    - {name: sizes, collective: all-to-all, size: [1MiB, 3MB], ranks: [3, 1, 2], after: sweep}
"""

Spoil = Callable[[str, str], InputError]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Write a scenario file and return its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "scenario.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def example(write: Callable[[str], Path]) -> Scenario:
    """The valid scenario, loaded."""
    return load(write(VALID))


@pytest.fixture
def spoil(write: Callable[[str], Path]) -> Spoil:
    """Replace one text of the valid scenario and return the error that loading it gives."""

    def spoil(old: str, new: str) -> InputError:
        assert VALID.count(old) >= 1, f"{old!r} is not in the scenario"
        with pytest.raises(InputError) as caught:
            load(write(VALID.replace(old, new, 1)))
        return caught.value

    return spoil
