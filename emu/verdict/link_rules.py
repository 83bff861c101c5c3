"""Rules on links: what they lost, and whether they carried what the routes put on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.measurement import LinkCounters, Repeat
from emu.records import Trace
from emu.units import format_size
from emu.verdict.case import Case, graded
from emu.verdict.levels import Reason
from emu.wire import ETHERNET_HEADER, IP_TCP_HEADERS, TCP_TIMESTAMPS

HEADERS = ETHERNET_HEADER + IP_TCP_HEADERS + TCP_TIMESTAMPS
"""Bytes of a counted frame that are no payload. A bare acknowledgement has nothing else, so it counts as nothing."""


def payload(link: LinkCounters) -> int:
    """Payload bytes that a link carried, from its frames: emulated ones, retransmissions included."""
    return max(0, link.bytes - HEADERS * link.packets)


def switch_drops(case: Case) -> Iterator[Reason]:
    """Open vSwitch lost nothing when it sent."""
    for place, repeat in case.repeats():
        for link in sorted(repeat.links, key=lambda link: -link.switch_drops):
            text = f"Open vSwitch lost {link.switch_drops} frames that it sent to the link{_during(place)}"
            share = link.switch_drops / max(1, link.packets + link.switch_drops)
            yield from graded("switch_drops", case.thresholds.switch_drops, share, link.link, text)


def paths(case: Case) -> Iterator[Reason]:
    """Every link carried what the routes and circuits put on it, no less and no more; the farthest off come first."""
    for place, repeat in case.repeats():
        if not repeat.trace.complete:
            continue  # the expectation is for the whole workload
        slack = _Slack.of(case, repeat)
        for link in sorted(repeat.links, key=lambda link: -abs(payload(link) - link.expected_bytes)):
            off = max(0.0, abs(payload(link) - link.expected_bytes) - slack.at(link))
            if off <= 0:
                continue
            error = off / link.expected_bytes if link.expected_bytes > 0 else float("inf")
            text = (
                f"traffic takes a wrong path: the link carried {format_size(payload(link))} of payload where "
                f"{format_size(link.expected_bytes)} were expected{_during(place)}"
            )
            yield from graded("path_error", case.thresholds.path_error, error, link.link, text)


def _during(place: str) -> str:
    return "" if place == "run" else f" ({place})"


@dataclass(frozen=True, slots=True)
class _Slack:
    """By how many bytes a link may differ in one repeat.

    everywhere: on each link. resent: retransmitted, so they may have crossed twice. charged: never sent, although the
    model counts them.
    """

    everywhere: float
    resent: float
    resent_share: float
    charged: float

    @classmethod
    def of(cls, case: Case, repeat: Repeat) -> _Slack:
        limits = case.thresholds
        most = max((link.expected_bytes for link in repeat.links), default=0.0)
        share = limits.path_slip if _changed_under_traffic(case, repeat) else limits.path_floor
        charged = sum(row.bytes for row in repeat.trace.flows if row.how == "charged")
        return cls(
            everywhere=max(share * most, limits.path_floor_frames * float(case.segment)),
            resent=repeat.health.retransmits * float(case.segment),
            resent_share=limits.path_resent,
            charged=charged / case.measurement.sigma,
        )

    def at(self, link: LinkCounters) -> float:
        missing = self.charged if payload(link) < link.expected_bytes else 0.0
        return self.everywhere + missing + min(self.resent, self.resent_share * link.expected_bytes)


def _changed_under_traffic(case: Case, repeat: Repeat) -> bool:
    """Whether a change fell into a transfer or collective, as measured or as predicted."""
    return any(
        _busy(trace, min(change.asked_at, change.dark_at), max(change.lit_at, change.asked_at + change.asked_dark))
        for change in repeat.changes
        for trace in (repeat.trace, case.prediction.trace)
    )


def _busy(trace: Trace, since: float, until: float) -> bool:
    return any(row.start < until and row.end > since for rows in (trace.flows, trace.collectives) for row in rows)
