"""What becomes of packets to one destination, from every switch at once.

For one destination a packet switch has one rule, so switches and rules form a functional graph: each switch has one
successor. Walking it once settles all sources together, where following every pair would cost the square.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controllers.paths import Forwarder, number_of, turns_back
from controllers.tables import Rule
from topologies.fabric import Kind, Port

End = Literal["delivered", "dropped", "loop", "wrong"]


@dataclass(frozen=True, slots=True)
class Fate:
    """How packets end.

    switch: where it is decided: the last switch that had them, the first of a loop's names.
    rule: that switch's rule, None if it has none for them.
    circle: the switches of a loop, in order.
    at: the NIC that packets arrive at, when they are delivered or go wrong.
    """

    end: End
    switch: str
    rule: Rule | None = None
    circle: tuple[str, ...] = ()
    at: Port | None = None


class Fates:
    """The fates of packets to one NIC. A switch is asked through the port by which packets enter it."""

    def __init__(self, forwarder: Forwarder, nic: Port) -> None:
        self.nic = nic
        self._forwarder = forwarder
        self._address = number_of(forwarder.fabric.address(nic))
        self._known: dict[str, Fate] = {}

    def of_source(self, src: Port) -> Fate | None:
        """What becomes of packets that another NIC sends here; None if its own light ends in the dark."""
        crossed = self._forwarder.cross(src)
        return self._after(crossed[0]) if crossed is not None else None

    def of_switch(self, switch: str) -> Fate:
        """What becomes of packets that the switch forwards by its rule for this destination."""
        trail: dict[str, Rule | None] = {}
        node = switch
        while node not in self._known:
            if node in trail:
                self._close(node, trail)
                break
            trail[node] = rule = self._forwarder.rule(node, self._address)
            fate, onward = self._step(node, rule)
            if fate is not None:
                self._known[node] = fate
                break
            node = onward
        for passed in reversed(trail):
            self._known.setdefault(passed, self._known[node])
        return self._known[switch]

    def _after(self, arrival: Port) -> Fate:
        """The fate of packets that have arrived at a port."""
        if self._forwarder.fabric.node(arrival.node).kind is Kind.HOST:
            return self._landed(arrival.node, None, arrival)
        rule = self._forwarder.rule(arrival.node, self._address)
        if rule is not None and turns_back(rule, arrival):
            return Fate("dropped", arrival.node, rule)
        return self.of_switch(arrival.node)

    def _step(self, switch: str, rule: Rule | None) -> tuple[Fate | None, str]:
        """The fate that a switch's rule decides itself, or else the switch that has packets next."""
        if rule is None:
            return Fate("dropped", switch), switch
        crossed = self._forwarder.cross(Port(switch, rule.out_port))
        if crossed is None:
            return Fate("dropped", switch, rule), switch
        arrival = crossed[0]
        if self._forwarder.fabric.node(arrival.node).kind is Kind.HOST:
            return self._landed(switch, rule, arrival), switch
        onward = self._forwarder.rule(arrival.node, self._address)
        if onward is not None and turns_back(onward, arrival):
            return Fate("dropped", arrival.node, onward), switch
        return None, arrival.node

    def _landed(self, switch: str, rule: Rule | None, arrival: Port) -> Fate:
        return Fate("delivered" if arrival == self.nic else "wrong", switch, rule, at=arrival)

    def _close(self, node: str, trail: dict[str, Rule | None]) -> None:
        """A trail came back to `node`: all from there on circle."""
        switches = list(trail)
        circle = switches[switches.index(node) :]
        first = circle.index(min(circle))
        circle = circle[first:] + circle[:first]
        self._known[node] = Fate("loop", circle[0], trail[circle[0]], tuple(circle))
