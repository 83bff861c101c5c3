"""What the shell shows, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from controllers.channel import Flows
from controllers.epochs import Epoch, Matchings
from controllers.tables import Rule, address_number
from emu.lab.counters import PortCount
from emu.lab.shell_circuits import Changed, described
from emu.scale import Scale
from emu.units import format_duration, format_rate
from topologies.fabric import Fabric, Port


def welcome(fabric: Fabric, epoch: Epoch, scale: Scale) -> str:
    """What an interactive shell begins with."""
    optics = f", {len(epoch.lit)} circuits lit (one-way)" if fabric.ocses else ""
    own = "circuits, light, dark, epoch, links" if fabric.ocses else "links"
    return (
        f"{fabric.name}: {len(fabric.hosts)} hosts, {len(fabric.switches)} switches, {len(fabric.ocses)} OCSs{optics}. "
        f"Rates are divided by {scale.beta:g}, times multiplied by {scale.tdf:g}.\n"
        f"Mininet's commands work here, and {own}, routes and counters; help explains them. Ctrl-D leaves.\n"
    )


def changed(change: Changed, scale: Scale) -> str:
    """How a change of circuits went."""
    if change.dark is not None:
        what = f"dark for {_both(change.dark, scale)}, asked {_both(change.asked, scale)}"
    else:
        what = f"done after {_both(change.took, scale)}"
        what += f", a reconfiguration takes {_both(change.asked, scale)}" if change.lit else ""
    return f"epoch {change.epoch.number}: {change.lit} lit, {change.gone} gone (one-way); control plane: {what}\n"


def _both(wall: float, scale: Scale) -> str:
    """A duration as modelled, and as it was here."""
    return f"{format_duration(wall / scale.tdf)} (here {format_duration(wall)})"


def circuits(fabric: Fabric, epoch: Epoch, ocs: str = "") -> str:
    """What is lit at an OCS, or at all of them, and the epoch."""
    shown = [node.name for node in fabric.ocses if ocs in ("", node.name)]
    lines = [f"{name}: {_lit(fabric, name, epoch.matchings)}" for name in shown]
    return "\n".join([f"epoch {epoch.number}", *lines]) + "\n"


def epochs(fabric: Fabric, now: Epoch, sets: Sequence[Epoch]) -> str:
    """The epoch that holds, and the sets of circuits that the scenario has, that one marked which is lit."""
    lines = [f"epoch {now.number}"]
    for place, known in enumerate(sets):
        lit = " (lit now)" if known.lit == now.lit else ""
        each = "; ".join(f"{node.name}: {_lit(fabric, node.name, known.matchings)}" for node in fabric.ocses)
        lines.append(f"  set {place}{lit}: {each or 'the fabric has no OCS'}")
    return "\n".join(lines) + "\n"


def _lit(fabric: Fabric, ocs: str, matchings: Matchings) -> str:
    return " ".join(described(fabric, ocs, matchings.get(ocs, frozenset()))) or "all dark"


def links(fabric: Fabric, wired: Iterable[Any], scale: Scale, delays: bool) -> str:
    """Mininet's links with their state, and rates and delays of the fabric's."""
    ports = {port.interface: port for node in fabric.nodes for port in fabric.ports(node.name)}
    lines = []
    for one in wired:
        link = fabric.link(ports[str(one.intf1)])
        rate = f"{format_rate(link.rate)}, here {format_rate(link.rate / scale.beta)}"
        lines.append(f"{one} {one.status()} {rate}{_delay(link.delay, scale, delays)}\n")
    return "".join(lines)


def _delay(delay: float, scale: Scale, made: bool) -> str:
    if not delay:
        return ""
    here = f"here {format_duration(delay * scale.tdf)}" if made else "here left out"
    return f"; delay {format_duration(delay)}, {here}"


def routes(fabric: Fabric, switch: str, flows: Flows) -> str:
    """The rules of a switch as it holds them, highest priority first, and what is not from here."""
    rows = [("match", "out", "to", "packets", "bytes")]
    for flow in sorted(flows.flows, key=lambda flow: (-flow.rule.priority, flow.rule)):
        out = Port(switch, flow.rule.out_port)
        match = _match(fabric, switch, flow.rule)
        rows.append((match, str(out.number), str(fabric.peer(out)), str(flow.packets), str(flow.bytes)))
    return "".join([*_aligned(rows), *(f"not from emu: {other}\n" for other in flows.foreign)])


def _match(fabric: Fabric, switch: str, rule: Rule) -> str:
    if rule.in_port is not None:
        return f"from {rule.in_port} ({fabric.peer(Port(switch, rule.in_port))})"
    destination = rule.destination or 0
    text = ".".join(str(destination >> shift & 255) for shift in (24, 16, 8, 0))
    if rule.mask == 0xFFFFFFFF:
        owners = [str(nic) for nic in fabric.all_nics if address_number(fabric.address(nic)) == destination]
        return f"{text} ({''.join(owners) or 'nobody'})"
    return f"{text} mask {'.'.join(str(rule.mask >> shift & 255) for shift in (24, 16, 8, 0))}"


def counters(fabric: Fabric, counts: Mapping[Port, PortCount], nodes: set[str]) -> str:
    """What ports have sent, and lost at their queues."""
    rows: list[tuple[str, ...]] = [("port", "to", "bytes", "frames", "queue drops", "rate here")]
    for port in sorted(port for port in counts if port.node in nodes):
        count = counts[port]
        rate = "not shaped" if count.configured is None else format_rate(count.configured)
        shown = (count.bytes, count.packets, count.queue_drops)
        rows.append((str(port), str(fabric.peer(port)), *(str(value) for value in shown), rate))
    return "".join(_aligned(rows))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns, those of numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if cell.isdigit() or (row is rows[0] and _numeric(rows, place)) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip() + "\n"


def _numeric(rows: Sequence[tuple[str, ...]], column: int) -> bool:
    return len(rows) > 1 and all(row[column].isdigit() for row in rows[1:])
