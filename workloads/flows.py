"""Lists of flows: who sends how much to whom, from when on or after which others."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

TriggerKind = Literal["oneshot", "multishot", "barrier"]


class FlowListError(ValueError):
    """A flow list that cannot be used: `file`, `line` (0 if no single line is to blame) and what would be valid."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}" if line else f"{file}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Flow:
    """`bytes` from node `src` to node `dst`.

    start: modelled seconds; None if `trigger` starts it.
    fires: triggers that are activated when its last byte was received.
    line: where it stands in its file.
    """

    id: int
    src: int
    dst: int
    bytes: int
    start: float | None = 0.0
    trigger: int | None = None
    fires: tuple[int, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Trigger:
    """What starts flows when others are over.

    oneshot: the first activation starts all its flows.
    multishot: each activation starts the next of its flows, in the list's order.
    barrier: the `count`-th activation starts all its flows.
    """

    id: int
    kind: TriggerKind
    count: int = 1


@dataclass(frozen=True, slots=True)
class FlowList:
    """Flows between nodes 0 to `nodes` - 1.

    source: the file's name, for messages.
    notes: what stands in the file but changes nothing here.
    """

    nodes: int
    flows: tuple[Flow, ...]
    triggers: tuple[Trigger, ...] = ()
    source: str = "flow list"
    notes: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise FlowListError for flows that make no sense, and for triggers that never or too often fire."""
        seen: set[int] = set()
        triggers = {trigger.id for trigger in self.triggers}
        for flow in self.flows:
            if flow.id in seen:
                raise FlowListError(self.source, flow.line, f"another flow has id {flow.id}; ids must be unique")
            if problem := self._problem(flow, triggers):
                raise FlowListError(self.source, flow.line, problem)
            seen.add(flow.id)
        if not self.flows:
            raise FlowListError(self.source, 0, "there are no flows")
        self._check_triggers()

    def _problem(self, flow: Flow, triggers: Set[int]) -> str:
        """What is wrong with a flow by itself, or an empty text."""
        for node in (flow.src, flow.dst):
            if not 0 <= node < self.nodes:
                return f"there is no node {node}; nodes are 0 to {self.nodes - 1}"
        if flow.src == flow.dst:
            return f"node {flow.src} sends to itself; a flow needs two nodes"
        if flow.bytes < 1:
            return f"a flow has at least 1 byte, not {flow.bytes}"
        for trigger in (flow.trigger, *flow.fires):
            if trigger is not None and trigger not in triggers:
                return f"trigger {trigger} is not defined; write a line such as: trigger id {trigger} oneshot"
        return ""

    def _check_triggers(self) -> None:
        """Let every flow that starts end, and see which never start."""
        state = TriggerState(self)
        waiting = {flow.id: flow for flow in self.flows if flow.start is None}
        over = deque(flow for flow in self.flows if flow.start is not None)
        while over:
            for flow in state.fire(over.popleft().fires):
                del waiting[flow.id]
                over.append(flow)
        if waiting:
            flow = next(iter(waiting.values()))
            raise FlowListError(
                self.source, flow.line, f"flow {flow.id} never starts: trigger {flow.trigger} is not fired often enough"
            )
        for trigger in self.triggers:
            times = state.fired[trigger.id]
            if trigger.kind != "multishot" and times > trigger.count:
                problem = f"trigger {trigger.id} ({trigger.kind}) is fired {times} times, but acts at {trigger.count}"
                raise FlowListError(self.source, 0, problem)


class TriggerState:
    """Which triggers fired how often in one run, and what an activation starts."""

    def __init__(self, flow_list: FlowList) -> None:
        self.fired: Counter[int] = Counter()
        self._kinds = {trigger.id: trigger for trigger in flow_list.triggers}
        self._targets: dict[int, list[Flow]] = defaultdict(list)
        for flow in flow_list.flows:
            if flow.trigger is not None:
                self._targets[flow.trigger].append(flow)

    def fire(self, triggers: Iterable[int]) -> list[Flow]:
        """Activate triggers, once each; returns the flows that start now."""
        return [flow for trigger in triggers for flow in self._fire(trigger)]

    def _fire(self, trigger: int) -> Sequence[Flow]:
        self.fired[trigger] += 1
        times, targets = self.fired[trigger], self._targets[trigger]
        if self._kinds[trigger].kind == "multishot":
            return targets[times - 1 : times]
        return targets if times == self._kinds[trigger].count else ()
