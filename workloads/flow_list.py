"""Flow lists as a workload: read from a file or text, and orchestrated."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from workloads.cluster import Cluster
from workloads.connection_matrix import parse_connection_matrix
from workloads.flow_csv import parse_flow_csv
from workloads.flows import Flow, FlowList, FlowListError, Trigger, TriggerState
from workloads.protocol import (
    Action,
    Announce,
    Connection,
    Done,
    Event,
    Run,
    SetTimer,
    Start,
    Task,
    TaskId,
    Timer,
    Transfer,
)

__all__ = ["Flow", "FlowList", "FlowListError", "FlowListOrchestrator", "Trigger", "parse_flow_list", "read_flow_list"]

FlowListFormat = Literal["auto", "htsim", "csv"]
_PARSERS: Mapping[str, Callable[[str, str], FlowList]] = {"htsim": parse_connection_matrix, "csv": parse_flow_csv}
_SUFFIXES = {".cm": "htsim", ".csv": "csv"}
PHASE = "flows"
_TIMER = "next-start"


def read_flow_list(path: Path | str, format: FlowListFormat = "auto") -> FlowList:
    """The flows of a file; see `parse_flow_list`. Raises FlowListError also if the file cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FlowListError(str(path), 0, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FlowListError(str(path), 0, "is not a text file in UTF-8") from None
    return parse_flow_list(text, str(path), format)


def parse_flow_list(text: str, source: str, format: FlowListFormat = "auto") -> FlowList:
    """The flows of a text that came from `source`.

    format: `htsim` (a connection matrix), `csv`, or `auto`: by the ending of `source` (.cm, .csv), else by the text.
    Raises FlowListError with file and line.
    """
    text = text.removeprefix("\ufeff")
    chosen = _guess(text, source) if format == "auto" else format
    return _PARSERS[chosen](text, source)


def _guess(text: str, source: str) -> str:
    known = _SUFFIXES.get(Path(source).suffix.lower())
    if known:
        return known
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if first.split()[:1] == ["Nodes"] or "->" in first:
        return "htsim"
    if "," in first:
        return "csv"
    raise FlowListError(
        source, 0, "neither a connection matrix ('Nodes N' first) nor CSV ('src,dst,bytes,start' first)"
    )


class FlowListOrchestrator:
    """Starts every flow at its time or by its trigger; node i of the list is rank i of the cluster.

    Each flow has a connection of its own: `kept` ones are open before time zero, `new` ones are opened by the flow.
    Raises FlowListError at construction if the cluster has fewer ranks than the list has nodes.
    """

    def __init__(self, flow_list: FlowList, cluster: Cluster, connections: Connection = "kept") -> None:
        if flow_list.nodes > cluster.ranks:
            problem = f"{flow_list.nodes} nodes need as many ranks, but the cluster has {cluster.ranks}"
            raise FlowListError(flow_list.source, 0, problem)
        self._cluster = cluster
        self._connections = connections
        self._flows: dict[TaskId, Flow] = {f"flow{flow.id}": flow for flow in flow_list.flows}
        timed = sorted(
            (flow.start, index, flow) for index, flow in enumerate(flow_list.flows) if flow.start is not None
        )
        self._coming = deque((start, flow) for start, _, flow in timed)
        self._triggers = TriggerState(flow_list)

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """Answer one event; see `Orchestrator`."""
        match event:
            case Start():
                return [self._announcement(now), *self._start_due(now)]
            case Timer(name) if name == _TIMER:
                return self._start_due(now)
            case Done(task):
                return self._done(task)
        return []

    def _start_due(self, now: float) -> list[Action]:
        """Run the flows whose time has come, and set the timer for the next."""
        due: list[Flow] = []
        while self._coming and self._coming[0][0] <= now:
            due.append(self._coming.popleft()[1])
        actions = self._run(due)
        if self._coming:
            actions.append(SetTimer(_TIMER, self._coming[0][0]))
        return actions

    def _done(self, task: Task) -> list[Action]:
        flow = self._flows.get(task.id)
        return self._run(self._triggers.fire(flow.fires)) if flow else []

    def _run(self, flows: Iterable[Flow]) -> list[Action]:
        return [Run(self._transfer(flow)) for flow in flows]

    def _transfer(self, flow: Flow) -> Transfer:
        name = f"flow{flow.id}"
        src, dst = self._cluster.endpoints((flow.src, flow.dst))
        return Transfer(name, src, dst, flow.bytes, channel=name, connection=self._connections, phase=PHASE)

    def _announcement(self, now: float) -> Announce:
        """All flows as one phase; its slack lasts until the first timed flow."""
        demand: Counter[tuple[str, str]] = Counter()
        for flow in self._flows.values():
            src, dst = self._cluster.endpoints((flow.src, flow.dst))
            if src.host != dst.host:
                demand[src.host, dst.host] += flow.bytes
        first = self._coming[0][0] if self._coming else now
        return Announce(PHASE, dict(demand), max(0.0, first - now))
