"""Link delays: whether this machine can make them, and where a lab makes them.

netem delays what a transmitter sends, behind its shaper's class (see `emu.lab.shaping`). An OCS has no queue at any
port, so the delay of the cable behind it is made in front of it, by the transmitter into it; that is exact as long as
all cables of an OCS have one delay, and anything else is refused.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from emu.errors import InputError, KeyPath
from emu.scenario.build import BuiltFabric
from emu.scenario.schema import Scenario
from emu.units import format_duration
from topologies.fabric import Fabric, Kind, Port

_ATTEMPT: Final = ("--net", "--", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
_AS_USER: Final = ("--user", "--map-root-user")
_UNKNOWN_KIND: Final = ("qdisc kind is unknown", "No such file or directory")


@cache
def can_delay() -> bool | None:
    """Whether the kernel has netem, tried in a network namespace of its own; None if this user cannot find out."""
    command = ("unshare", *(() if os.geteuid() == 0 else _AS_USER), *_ATTEMPT)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if any(words in done.stderr for words in _UNKNOWN_KIND) else None


def delays_made(fabric: Fabric) -> bool:
    """Whether a lab of that fabric makes delays: it has some, and netem is there."""
    return any(link.delay for link in fabric.links) and can_delay() is True


def check_delays(scenario: Scenario, built: Sequence[BuiltFabric]) -> None:
    """Refuse delays that no lab can make here, unless the scenario says that it may leave them out.

    built: fabrics of the scenario. Where this user cannot find out whether there is netem, the lab will.

    Raises InputError with the line of the fabric.
    """
    if scenario.emulation.delay == "best-effort":
        return
    for one in built:
        delayed = [link for link in one.fabric.links if link.delay]
        if not delayed:
            continue
        if can_delay() is False:
            problem = f"{delayed[0]} has a delay of {format_duration(delayed[0].delay)}, and this kernel has no netem"
            hint = "leave delays out, or write emulation: {delay: best-effort} to run without them"
            raise scenario.error(_place(scenario, one.fabric), problem, hint=hint)
        _check_optics(scenario, one.fabric)


def emulated_delays(fabric: Fabric, tdf: float) -> dict[Port, float]:
    """Wall seconds by which each transmitter delays what it sends, those without a delay left out.

    tdf: time dilation factor. A transmitter into an OCS also makes the delay of the cable that follows.
    """
    delays = {port: _delay(fabric, port) * tdf for port in fabric.transmitters()}
    return {port: delay for port, delay in delays.items() if delay}


def _delay(fabric: Fabric, port: Port) -> float:
    link, peer = fabric.link(port), fabric.peer(port)
    return link.delay * (2 if fabric.node(peer.node).kind is Kind.OCS else 1)


def _check_optics(scenario: Scenario, fabric: Fabric) -> None:
    for ocs in fabric.ocses:
        delays: Mapping[float, Port] = {fabric.link(port).delay: port for port in fabric.ports(ocs.name)}
        if len(delays) > 1:
            shown = " and ".join(f"{format_duration(delay)} at {port}" for delay, port in sorted(delays.items())[:2])
            problem = f"the cables of {ocs.name} have different delays ({shown}), which a lab cannot make"
            hint = "give all cables of an OCS one delay, or write emulation: {delay: best-effort}"
            raise scenario.error(_place(scenario, fabric), problem, hint=hint)


def _place(scenario: Scenario, fabric: Fabric) -> KeyPath:
    """Where the scenario speaks of the delay: the fabric's key `delay`, if its builder has one."""
    for number, spec in enumerate(scenario.fabrics):
        if spec.name == fabric.name:
            return ("fabrics", number, "delay") if "delay" in spec.parameters else ("fabrics", number)
    raise InputError(f"the scenario has no fabric {fabric.name!r}")
