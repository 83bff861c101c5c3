"""What a dependent step costs on this machine: the event loop, the kernel, and a frame's way through the switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from controllers.loads import Load
from emu.lab.lab import Lab
from emu.lab.rehearsal import rehearse
from emu.measurement import CircuitChange
from emu.model.conditions import Conditions
from emu.packet.charging import Charging
from emu.packet.clock import ModelClock
from emu.packet.engine import PacketEngine
from emu.packet.lanes import Lanes
from emu.scale import Scale
from emu.scenario.build import cluster_of
from workloads.collectives import critical_steps
from workloads.protocol import Action, Announce, Collective, Event, Run, Start

_MESSAGE_MTU, _MOST_RANKS, _ROUNDS = 8, 16, 4


@dataclass(frozen=True)
class _Once:
    """An orchestrator of one collective."""

    collective: Collective

    def on(self, event: Event, now: float) -> Sequence[Action]:
        return [Run(self.collective)] if isinstance(event, Start) else []


class NoCircuits:
    """A circuit schedule without a change."""

    busy = False
    ended = patience = 0
    changes: tuple[CircuitChange, ...] = ()

    def use(self, clock: ModelClock, loads: Callable[[], Iterable[Load]]) -> None:
        """Nothing will be asked."""

    def announce(self, announced: Announce, now: float) -> None:
        """Nobody listens."""

    def pass_over(self, until: float) -> bool:
        """Nothing to pass over."""
        return False

    def next_handover(self) -> float | None:
        """Never."""
        return None

    def hand_over(self, clock: ModelClock) -> None:
        """Nothing to hand over."""

    def take_events(self) -> list[tuple[Event, float]]:
        """Nothing ever happens."""
        return []


def step_cost(lab: Lab, lanes: Lanes, beta: float, efficiency: float) -> float:
    """Wall seconds that a dependent step takes beyond its ideal, from a ring all-reduce of short messages.

    The ring goes through the first ranks in order. The best of some rounds counts, for others on the machine only add;
    the first, which opens TCP's windows, is never the best.
    """
    cluster = cluster_of(lab.fabric)
    ranks = min(cluster.ranks, _MOST_RANKS)
    message = _MESSAGE_MTU * lab.scenario.emulation.mtu
    ring = Collective("steps", "all-reduce", "ring", tuple(range(ranks)), message * ranks)
    conditions = Conditions(initial=lab.built.epoch, seed=lab.scenario.seed, efficiency=efficiency)
    rehearsal = rehearse(lab.fabric, _Once(ring), cluster, conditions)
    lanes.open_all(rehearsal.lanes)
    scale = Scale(sigma=1.0, beta=beta)  # one modelled byte is one byte sent; modelled seconds are beta times shorter
    rounds = []
    for _ in range(_ROUNDS):
        charging = Charging(lab.scenario.emulation.mtu, 0.0, send=True)
        engine = PacketEngine(_Once(ring), cluster, lab.fabric, lab.loop, lanes, scale, charging, NoCircuits())
        engine.run()
        rounds.append(engine.dispatcher.trace.end)
    excess = (min(rounds) - rehearsal.prediction.trace.end) * scale.tdf
    return max(0.0, excess / max(1, critical_steps(ring)))
