"""Scenarios, capacities and pieces of work that the tests of planning start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controllers.epochs import Epoch, EpochChange
from emu.measurement import Capacity
from emu.plan import Plan, plan
from emu.plan.limits import Terms
from emu.plan.work import Item, Round, Work
from emu.scenario.build import BuiltFabric, build_fabrics
from emu.scenario.schema import Scenario
from topologies.fat_tree import fat_tree

FAT_TREE = {"kind": "fat-tree", "k": 4, "rate": "400Gbps"}
HYBRID = {
    "kind": "hybrid",
    "pods": 4,
    "hosts_per_pod": 4,
    "uplinks": 2,
    "rate": "400Gbps",
    "reconfiguration": "10ms",
    "circuits": {"o0": ["t0-t1", "t1-t2", "t2-t3", "t3-t0"]},
    "schedule": [{"at": "100ms", "circuits": {"o0": ["t0-t2", "t2-t1", "t1-t3", "t3-t0"]}}],
}
GRADIENTS = {"name": "gradients", "phase": "training", "collective": "all-reduce", "size": "layer-gradients"}


def scenario(*steps: Mapping[str, Any], fabrics: Sequence[Mapping[str, Any]] = (FAT_TREE,), **rest: Any) -> Scenario:  # noqa: ANN401 - as YAML
    """A scenario of collectives; `rest` goes to `emulation`, except `repeat`."""
    repeat = rest.pop("repeat", 1)
    workload = {"kind": "collectives", "model": "Qwen3-8B", "steps": list(steps)}
    return Scenario.model_validate(
        {"fabrics": list(fabrics), "workload": workload, "emulation": rest, "repeat": repeat}
    )


def flows(text: str, **emulation: Any) -> Scenario:  # noqa: ANN401 - as YAML
    """A scenario of a flow list on a fat-tree of 16 hosts at 400 Gb/s."""
    workload = {"kind": "flow-list", "flows": text, "format": "csv"}
    return Scenario.model_validate({"fabrics": [FAT_TREE], "workload": workload, "emulation": emulation})


def planned(wanted: Scenario, *capacities: Capacity) -> Plan:
    """The plan of a scenario with seed 1."""
    return plan(wanted, build_fabrics(wanted), capacities, 1)


def capacity(fabric: str = "fat-tree", rate: float = 60e6, cost: float = 0.005, jitter: float = 0.005) -> Capacity:
    """A calibrated fabric, by default as a nominal one of 16 NICs."""
    return Capacity(fabric, rate, cost, jitter)


def item(*, steps: int = 10, seconds: float = 1.0, sizes: Sequence[int] = (1_000_000,), phase: str = "p") -> Item:
    """A step of one round."""
    return Item("step", phase, (Round("step", steps, seconds, sum(sizes)),), np.array(sizes, dtype=float))


def work(*items: Item, spans: Sequence[tuple[float, float, float]] = (), dark: float = 0.0, at: float = 0.5) -> Work:
    """Work on a fat-tree that ends at 1 s. spans: (bytes, start, end). dark: of one change of circuits at `at`."""
    schedule = (EpochChange(at, Epoch(1), dark),) if dark else ()
    built = BuiltFabric(fat_tree(k=2), Epoch(), schedule, dark)
    columns = tuple(np.array([span[place] for span in spans], dtype=float) for place in range(3))
    return Work(built, items, (columns[0], columns[1], columns[2]), end=1.0, changes=schedule)


def terms(*, beta: float = 20_000.0, charging: bool = True, buckets: int | None = None, **known: float) -> Terms:
    """Terms with an MTU of 9000; `known` goes to `capacity`."""
    return Terms(capacity(**known), beta, buckets, 9000, charging)  # type: ignore[arg-type]
