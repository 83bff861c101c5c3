"""Circuits as people write them, checked against a fabric; and what differs between two epochs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from controllers.epochs import CircuitError, Epoch, Matching, duplex
from topologies.fabric import Fabric, Port

_NUMBERS = re.compile(r"(\d+)\s*-\s*(\d+)\Z")
_NAMES = re.compile(r"([a-z][a-z0-9]*)(?::(\d+))?\s*-\s*([a-z][a-z0-9]*)(?::(\d+))?\Z")
_FORMS = "write t0-t1 (switches), t0:5-t1:6 (their ports) or 3-7 (ports of the OCS)"

_End = int | str
"""One end of a written circuit: an OCS port, or the name of a node whose next free uplink it takes."""


def resolve(fabric: Fabric, ocs: str, pairs: Sequence[str]) -> Matching:
    """The matching that the written pairs ask for, every circuit both ways.

    A pair is `t0-t1`, `t0:5-t1:6` (the ports of these nodes that are wired to the OCS) or `3-7` (ports of the OCS).
    The nth circuit that names a bare t0 takes t0's nth uplink into this OCS, those passed over that another pair of the
    list claims by number.

    Raises CircuitError for an unknown OCS, node or port, for a port used twice and for more circuits than uplinks.
    """
    _check_ocs(fabric, ocs)
    ends = [_parse(fabric, ocs, pair) for pair in pairs]
    claimed = {end for pair in ends for end in pair if isinstance(end, int)}
    free = {node: [port for port in ports if port not in claimed] for node, ports in _uplinks(fabric, ocs).items()}
    joined = [(_take(fabric, ocs, a, free), _take(fabric, ocs, b, free)) for a, b in ends]
    _check_once(ocs, (port for pair in joined for port in pair), "used")
    return duplex(joined)


def epoch(fabric: Fabric, number: int, circuits: Mapping[str, Sequence[str]]) -> Epoch:
    """The epoch of that number with the written circuits by OCS (see `resolve`). Raises CircuitError."""
    return Epoch(number, {ocs: resolve(fabric, ocs, pairs) for ocs, pairs in circuits.items()})


def check_matching(fabric: Fabric, ocs: str, matching: Matching) -> None:
    """Raise CircuitError unless every port is wired and takes light in once and out once at most."""
    _check_ocs(fabric, ocs)
    wired = {port.number for port in fabric.ports(ocs)}
    for circuit in sorted(matching):
        for port in circuit:
            if port not in wired:
                _check_port(fabric, ocs, port)
        if circuit.in_port == circuit.out_port:
            raise CircuitError(f"{ocs}: a circuit joins port {circuit.in_port} to itself")
    _check_once(ocs, (circuit.in_port for circuit in matching), "the entry of")
    _check_once(ocs, (circuit.out_port for circuit in matching), "the exit of")


def check_epoch(fabric: Fabric, epoch: Epoch) -> None:
    """Check every matching of an epoch; raises CircuitError as `check_matching` does."""
    for ocs, matching in epoch.matchings.items():
        check_matching(fabric, ocs, matching)


def darkened(old: Epoch, new: Epoch) -> dict[str, Matching]:
    """By OCS: the circuits of `old` that `new` has not; an OCS that loses none is left out."""
    lost = {ocs: frozenset(old.circuits(ocs) - new.circuits(ocs)) for ocs in sorted(old.matchings)}
    return {ocs: circuits for ocs, circuits in lost.items() if circuits}


def lit(old: Epoch, new: Epoch) -> dict[str, Matching]:
    """By OCS: the circuits of `new` that `old` has not; an OCS that gains none is left out."""
    return darkened(new, old)


def with_dark(old: Epoch, new: Epoch) -> Epoch:
    """What shines between two epochs: the circuits that both have, under the old number (the new is not committed)."""
    return Epoch(old.number, {ocs: frozenset(old.circuits(ocs) & new.circuits(ocs)) for ocs in sorted(old.matchings)})


# -- helpers ----------------------------------------------------------------------------------------------------------


def _check_ocs(fabric: Fabric, ocs: str) -> None:
    valid = [node.name for node in fabric.ocses]
    if ocs not in valid:
        raise CircuitError(f"fabric {fabric.name} has no OCS {ocs!r}; it has {', '.join(valid) or 'none'}")


def _check_port(fabric: Fabric, ocs: str, number: int) -> None:
    valid = [port.number for port in fabric.ports(ocs)]
    if number not in valid:
        raise CircuitError(f"{ocs} has no port {number}; wired are {_listed(valid)}")


def _check_once(ocs: str, ports: Iterable[int], use: str) -> None:
    twice = sorted(port for port, count in Counter(ports).items() if count > 1)
    if twice:
        raise CircuitError(f"{ocs}: port {twice[0]} is {use} more than one circuit")


def _uplinks(fabric: Fabric, ocs: str) -> dict[str, list[int]]:
    """By node: the OCS ports that it is wired to, in the order of the node's own ports."""
    uplinks: dict[str, list[Port]] = {}
    for port in fabric.ports(ocs):
        peer = fabric.peer(port)
        uplinks.setdefault(peer.node, []).append(peer)
    return {node: [fabric.peer(port).number for port in sorted(ports)] for node, ports in uplinks.items()}


def _parse(fabric: Fabric, ocs: str, pair: str) -> tuple[_End, _End]:
    if match := _NUMBERS.match(pair.strip()):
        a, b = int(match[1]), int(match[2])
        _check_port(fabric, ocs, a)
        _check_port(fabric, ocs, b)
        if a == b:
            raise CircuitError(f"{ocs}: circuit {pair!r} joins a port to itself")
        return a, b
    if match := _NAMES.match(pair.strip()):
        if match[1] == match[3]:
            raise CircuitError(f"{ocs}: circuit {pair!r} joins {match[1]} to itself")
        return _end(fabric, ocs, match[1], match[2]), _end(fabric, ocs, match[3], match[4])
    raise CircuitError(f"{ocs}: {pair!r} is not a circuit; {_FORMS}")


def _end(fabric: Fabric, ocs: str, node: str, number: str | None) -> _End:
    """What a written end stands for; its node must have a port at this OCS."""
    uplinks = _uplinks(fabric, ocs)
    if node not in uplinks:
        raise CircuitError(f"{ocs}: {node!r} is not wired to it; {', '.join(sorted(uplinks))} are")
    if number is None:
        return node
    ports = [fabric.peer(Port(ocs, port)) for port in uplinks[node]]
    for port in ports:
        if port.number == int(number):
            return fabric.peer(port).number
    raise CircuitError(
        f"{ocs}: {node}:{number} is not wired to it; of {node} its ports {_listed([p.number for p in ports])} are"
    )


def _take(fabric: Fabric, ocs: str, end: _End, free: Mapping[str, list[int]]) -> int:
    if isinstance(end, int):
        return end
    if not free[end]:
        has = len(_uplinks(fabric, ocs)[end])
        raise CircuitError(f"{ocs}: more circuits name {end} than the {has} uplinks that it has there")
    return free[end].pop(0)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
