"""Circuits that a person sets by hand, in a lab that runs: each change goes the way of every other, in one epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controllers.channel import Aborted, Committed, ControllerError
from controllers.circuits import resolve
from controllers.epochs import Circuit, CircuitError, Epoch, EpochChange, Matching
from controllers.transition import transition
from emu.lab.control import Control
from emu.lab.errors import LabError
from topologies.fabric import Fabric, Port

_TIMEOUT = 15.0
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change of circuits was, by the controller's word; wall seconds.

    lit, gone: how many one-way circuits came and went. asked: the reconfiguration time.
    dark: last delete sent to last barrier reply; None unless some came and some went.
    took: first command to last barrier reply.
    """

    epoch: Epoch
    lit: int
    gone: int
    asked: float
    dark: float | None
    took: float


class Optics:
    """The circuits of a lab's OCSs, and the epoch that is committed."""

    def __init__(self, control: Control, epoch: Epoch, dark: float) -> None:
        """`epoch` must be installed. dark: wall seconds of a reconfiguration."""
        self.epoch = epoch
        self._control, self._fabric, self._dark = control, control.fabric, dark

    def light(self, ocs: str, pairs: Sequence[str]) -> Changed:
        """Light further circuits, on ports that are dark. Raises CircuitError where they are not."""
        kept = [f"{a}-{b}" for a, b in both_ways(self.epoch.circuits(ocs))]
        one_way = self.epoch.circuits(ocs) - resolve(self._fabric, ocs, kept)
        return self._move({ocs: resolve(self._fabric, ocs, [*kept, *pairs]) | one_way})

    def darken(self, ocs: str, ends: Sequence[str]) -> Changed:
        """Take circuits away: those that `ends` name (see `named`). Raises CircuitError if there are none."""
        gone = frozenset[Circuit]().union(*(named(self._fabric, ocs, self.epoch.circuits(ocs), end) for end in ends))
        return self._move({ocs: self.epoch.circuits(ocs) - gone})

    def replace(self, ocs: str, pairs: Sequence[str]) -> Changed:
        """Make these the only circuits of an OCS."""
        return self._move({ocs: resolve(self._fabric, ocs, pairs)})

    def move_to(self, matchings: Mapping[str, Matching]) -> Changed:
        """Make these the only circuits of all OCSs."""
        return self._move({**{node.name: frozenset() for node in self._fabric.ocses}, **matchings})

    def _move(self, changed: Mapping[str, Matching]) -> Changed:
        """Go to the next epoch, in which some OCSs have other circuits. Raises CircuitError if nothing changes."""
        epoch = Epoch(self.epoch.number + 1, {**self.epoch.matchings, **changed})
        lit, gone = epoch.lit - self.epoch.lit, self.epoch.lit - epoch.lit
        if not lit and not gone:
            raise CircuitError("that is how it is already: no circuit changes")
        done = self._fire(epoch)
        self.epoch = epoch
        ended = done.light.replied_ns if lit else done.dark.replied_ns
        took = (ended - done.dark.sent_ns) / 1e9
        return Changed(epoch, len(lit), len(gone), self._dark, done.control_dark if lit and gone else None, took)

    def _fire(self, epoch: Epoch) -> Committed:
        control = self._control
        tables = control.realised(self.epoch), control.realised(epoch)
        step = transition(*tables, frozenset(node.name for node in self._fabric.ocses), control.dpids)
        name, dark = control.name_of(EpochChange(0.0, epoch, self._dark)), round(self._dark * 1e9)
        try:
            control.client.prepare(name, dark=step.dark, light=step.light, at_ns=None, reconfiguration_ns=dark)
            end = control.client.wait_change(name, self._dark + _TIMEOUT)
        except ControllerError as error:
            raise LabError(control.blame(error.reason, error.dpid)) from error
        if isinstance(end, Aborted):
            raise LabError(f"the change was aborted ({end.outcome}): {control.blame(end.reason, end.dpid)}")
        if control.holding is not None:
            control.holding.follow(tables[1])
        return end


def both_ways(circuits: Matching) -> list[tuple[int, int]]:
    """The pairs of ports, lower first, that light joins both ways."""
    pairs = ((circuit.in_port, circuit.out_port) for circuit in circuits)
    return sorted((a, b) for a, b in pairs if a < b and Circuit(b, a) in circuits)


def one_way(circuits: Matching) -> list[Circuit]:
    """The circuits that have no other beside them for the way back."""
    return sorted(circuit for circuit in circuits if Circuit(circuit.out_port, circuit.in_port) not in circuits)


def described(fabric: Fabric, ocs: str, circuits: Matching) -> list[str]:
    """Circuits as people write them: `t0:5-t1:6`, and `t0:5>t1:6` for those of one way."""
    ends = {port.number: str(fabric.peer(port)) for port in fabric.ports(ocs)}
    return [
        *(f"{ends[a]}-{ends[b]}" for a, b in both_ways(circuits)),
        *(f"{ends[circuit.in_port]}>{ends[circuit.out_port]}" for circuit in one_way(circuits)),
    ]


def named(fabric: Fabric, ocs: str, circuits: Matching, text: str) -> Matching:
    """Of `circuits` those that a text means: `all`, an end (`t0`, `t0:5`, port `3`), or two ends with - between them.

    Raises CircuitError if it means none.
    """
    if text == _ALL:
        found = circuits
    else:
        ends = [frozenset(_ports(fabric, ocs, end)) for end in text.split("-")]
        found = frozenset(circuit for circuit in circuits if _between(circuit, ends))
    if not found:
        raise CircuitError(f"{ocs}: no circuit is lit that {text!r} names; {_known(fabric, ocs, circuits)}")
    return found


def _between(circuit: Circuit, ends: Sequence[frozenset[int]]) -> bool:
    """Whether a circuit touches the one end, or joins the two."""
    a, b = circuit
    if len(ends) == 1:
        return a in ends[0] or b in ends[0]
    return len(ends) == 2 and ((a in ends[0] and b in ends[1]) or (b in ends[0] and a in ends[1]))


def _ports(fabric: Fabric, ocs: str, end: str) -> Iterable[int]:
    """The OCS ports that one end names."""
    for port in fabric.ports(ocs):
        peer: Port = fabric.peer(port)
        if end in (str(port.number), peer.node, str(peer)):
            yield port.number


def _known(fabric: Fabric, ocs: str, circuits: Matching) -> str:
    shown = " ".join(described(fabric, ocs, circuits))
    return f"lit are {shown}" if shown else "it is all dark"
