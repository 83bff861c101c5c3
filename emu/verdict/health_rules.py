"""Rules on how machine and transport did while the workload ran."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measurement import Repeat
from emu.units import format_duration, format_size
from emu.verdict.case import Case, graded, percent
from emu.verdict.levels import Reason


def processors(case: Case) -> Iterator[Reason]:
    """The processors had time to spare, and the event loop was on time."""
    for place, repeat in case.repeats():
        health = repeat.health
        busy = f"processors were busy: {percent(health.idle_cpu)} idle while the workload ran"
        yield from graded("idle_during", case.thresholds.idle_during, health.idle_cpu, place, busy)
        late = f"the event loop was {format_duration(health.lag_p99)} late (99th percentile) of wall time"
        yield from graded("loop_lag", case.thresholds.loop_lag, health.lag_p99, place, late)


def socket_buffers(case: Case) -> Iterator[Reason]:
    """Open vSwitch's AF_PACKET sockets had large buffers and lost nothing; the kernel's datapath has none."""
    for place, repeat in case.repeats():
        health = repeat.health
        smallest = f"smallest buffer {format_size(health.smallest_buffer)}"
        if health.smallest_buffer > 0:
            text = f"Open vSwitch's AF_PACKET sockets have small buffers: {smallest}"
            band = case.thresholds.socket_buffer
            yield from graded("socket_buffer", band, health.smallest_buffer, place, text)
        text = f"Open vSwitch's AF_PACKET sockets lost {health.receive_drops} received frames; {smallest}"
        share = health.receive_drops / case.segments(repeat)
        yield from graded("receive_drops", case.thresholds.receive_drops, share, place, text)


def retransmits(case: Case) -> Iterator[Reason]:
    """What TCP sent again is explained by drops that were counted."""
    for place, repeat in case.repeats():
        health, explained = repeat.health, explained_drops(repeat)
        unexplained = health.retransmits - explained
        if unexplained <= case.thresholds.retransmits_floor:
            continue
        text = f"{health.retransmits} segments were sent again, but only {explained} drops were counted"
        share = unexplained / case.segments(repeat)
        yield from graded("unexplained_retransmits", case.thresholds.unexplained_retransmits, share, place, text)


def explained_drops(repeat: Repeat) -> int:
    """All drops of a repeat that have a known place, and what TCP could take for lost though it was not.

    That is what was held in the dark for longer than a retransmission timer runs, or overtaken after a detour.
    """
    at_links = sum(link.queue_drops + link.switch_drops for link in repeat.links)
    late = sum((change.held or 0) + (change.out_of_order or 0) for change in repeat.changes)
    return at_links + repeat.health.dark_drops + repeat.health.receive_drops + late


def connections(case: Case) -> Iterator[Reason]:
    """Every kept connection was open before time zero."""
    for place, repeat in case.repeats():
        late = repeat.health.late_connections
        text = f"{late} connections were opened after time zero"
        yield from graded("late_connections", case.thresholds.late_connections, late, place, text)


def charged_messages(case: Case) -> Iterator[Reason]:
    """Nearly all bytes of a phase crossed the fabric as packets; of the repeats, the worst one counts."""
    shares: dict[str, float] = {}
    for _, repeat in case.repeats():
        for name, phase in repeat.trace.phases.items():
            fabric = phase.charged_bytes + phase.packet_bytes
            shares[name] = max(shares.get(name, 0.0), phase.charged_bytes / fabric if fabric else 0.0)
    for name, share in shares.items():
        text = f"{percent(share)} of the phase's bytes were too small to send, and charged in time"
        yield from graded("charged_share", case.thresholds.charged_share, share, name, text)
