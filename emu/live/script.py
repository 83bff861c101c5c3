"""Orchestrators and policies of an open lab: by the clock, once, and those that stayed with the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from controllers.epochs import Matchings
from controllers.policies.protocol import Keep, Plan, PolicyEvent, View
from emu.dispatch import Dispatcher
from emu.records import FlowRecord
from workloads.cluster import Cluster
from workloads.protocol import Action, Event, Orchestrator, Run, SetTimer, Start, Task, Timer, Transfer


class Script:
    """An orchestrator that acts at the times it was given, and remembers what it heard."""

    def __init__(self, *plan: tuple[float, Action]) -> None:
        """`plan`: modelled seconds, and what to do then."""
        self.heard: list[tuple[Event, float]] = []
        self._plan = plan

    @classmethod
    def of(cls, *tasks: Task) -> Script:
        """All of these at time zero."""
        return cls(*((0.0, Run(task)) for task in tasks))

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """See workloads.protocol.Orchestrator."""
        self.heard.append((event, now))
        match event:
            case Start():
                later = [SetTimer(str(place), at) for place, (at, _) in enumerate(self._plan) if at > 0]
                return [*(action for at, action in self._plan if at <= 0), *later]
            case Timer(name):
                return [self._plan[int(name)][1]]
            case _:
                return []

    def told(self, kind: type[Event]) -> list[Any]:
        """The events of one kind that it heard."""
        return [event for event, _ in self.heard if isinstance(event, kind)]


class Asker(Protocol):
    """Asks what stayed with the user."""

    def __call__(self, whom: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever is asked and answered
        """The answer of `policy.on` or `orchestrator.on`."""
        ...


@dataclass(frozen=True)
class DistantPolicy:
    """The user's policy, asked over the socket."""

    name: str
    matchings: tuple[Matchings, ...]
    ask: Asker

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """See CircuitPolicy."""
        answer: Plan | Keep = self.ask("policy", event, _plain(view), now)
        return answer

    def known(self) -> tuple[Matchings, ...]:
        """See CircuitPolicy."""
        return self.matchings


@dataclass(frozen=True)
class DistantOrchestrator:
    """The user's orchestrator, asked over the socket."""

    ask: Asker

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """See workloads.protocol.Orchestrator."""
        actions: Sequence[Action] = self.ask("orchestrator", event, now)
        return actions


@dataclass(frozen=True)
class Once:
    """One change of circuits as soon as it can be, and no other."""

    matchings: Matchings
    name: str = "once"

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The change, until it was begun."""
        return Plan(self.matchings, reason="asked for") if view.last_at is None else Keep("it was asked for once")

    def known(self) -> tuple[Matchings, ...]:
        """The one."""
        return (self.matchings,)


def _plain(view: View) -> View:
    """The same with what it would only work out when looked at: it must travel."""
    return replace(
        view,
        demand=dict(view.demand),
        site_demand=dict(view.site_demand),
        free_ports=dict(view.free_ports),
        in_flight=dict(view.in_flight),
    )


def transfers_of(orchestrator: Orchestrator, cluster: Cluster) -> Iterator[Transfer]:
    """Every transfer that an orchestrator asks for if each takes no time and no circuits change."""
    dispatcher, now = Dispatcher(orchestrator, cluster), 0.0
    dispatcher.start()
    while not dispatcher.finished:
        for transfer in dispatcher.ready(now):
            yield transfer
            ends = (str(transfer.src), str(transfer.dst), transfer.bytes, now, now, now)
            dispatcher.done(transfer.id, FlowRecord(transfer.id, transfer.collective, transfer.phase, *ends), now)
        if (waking := dispatcher.next_wake) is not None:
            now = max(now, waking)
            dispatcher.wake(now)
