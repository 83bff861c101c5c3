"""What forbids to scale further: each limit names the least time dilation that it allows.

With beta given by what the machine carries, sigma = beta/TDF: a larger TDF means more bytes and more wall time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from emu.measurement import Capacity
from emu.plan.work import Floats, Item, Work
from emu.units import format_duration, format_size

SHORTEST_DARK = 0.05
"""Wall seconds that a reconfiguration takes at least: below, the control plane's own time would show."""
JITTERS = 5
"""A reconfiguration takes at least so many times the control plane's jitter."""
STEP_SHARE = 0.05
"""Dependent steps may cost this share of a step's ideal, and messages too small to send may hold it of its bytes."""
COALESCED_MESSAGE = 8
"""Full frames that messages have at least which stand for many small ones: with fewer, a transport's start is most of
what would be measured."""
GOOD_MESSAGE = 64
"""Full frames of a message from which a transport's start does not show: reported, not asked for."""


@dataclass(frozen=True, slots=True)
class Limit:
    """subject: what it is about. tdf: what it asks for at least. text: why. advice: what a user can change about it."""

    subject: str
    tdf: float
    text: str
    advice: str

    def over(self, tdf: float) -> bool:
        """Whether it asks for more than `tdf`."""
        return self.tdf > tdf * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Terms:
    """What limits are worked out from, beside the workload.

    frame: the MTU. charging: messages that scale to less than one frame are charged, not sent.
    """

    capacity: Capacity
    beta: float
    buckets: int | None
    frame: int
    charging: bool


def limits(work: Work, terms: Terms) -> Iterator[Limit]:
    """What a fabric cannot do without. Steps too small for any scale bind nothing."""
    if work.changes:
        yield _dark_time(work, terms.capacity)
    tiny = small(work, terms)
    bulk = [item for item in work.items if item.name not in tiny]
    yield from (_steps(work, item, terms) for item in bulk)
    yield from (_coalesced(work, item, terms) for item in bulk if item.coalesced)
    if terms.charging:
        yield from _sent(work, bulk, terms)


def merging_limits(work: Work, terms: Terms) -> Iterator[Limit]:
    """The limits that merging loosens: those of the steps of layer gradients."""
    return (_steps(work, item, terms) for item in work.items if item.buckets)


def step_wishes(work: Work, terms: Terms) -> Iterator[Limit]:
    """What it takes that each collective's own steps cost 5 % of its own ideal at most.

    Merged layer gradients are alike, so what `limits` says of their step holds for each, and they have no wishes.
    """
    for item in work.items:
        for part in item.rounds if item.buckets is None else ():
            text = _cost_text(f"{work.name}: {part.id} ({format_size(part.bytes)})", part.steps, part.seconds, terms)
            yield Limit(part.id, _tdf(part.steps, part.seconds, terms), text, "use larger sizes")


def message_wishes(work: Work, terms: Terms) -> Iterator[Limit]:
    """What it takes that a step's messages are at least 64 full frames long."""
    for item in work.items:
        size = smallest_kept(item.messages, STEP_SHARE)
        text = f"{work.name}: {item.name}: messages of {format_size(size)} are best sent as {GOOD_MESSAGE} full frames"
        yield Limit(item.name, terms.beta * terms.frame * GOOD_MESSAGE / size, text, "use larger messages")


def small(work: Work, terms: Terms) -> list[str]:
    """The steps that are too small to be measured at any scale: not even with all of their bytes (sigma = 1)."""
    return [item.name for item in work.items if _is_small(work, item, terms)]


def _is_small(work: Work, item: Item, terms: Terms) -> bool:
    unsent = terms.charging and smallest_kept(item.messages, 0.5) < terms.frame
    return unsent or _steps(work, item, terms).over(terms.beta)


def frames(item: Item, sigma: float, mtu: int) -> float:
    """Full frames of a step's shorter messages: all but 5 % of its bytes are in messages of so many or more."""
    return smallest_kept(item.messages, STEP_SHARE) / sigma / mtu


def _dark_time(work: Work, capacity: Capacity) -> Limit:
    least = max(SHORTEST_DARK, JITTERS * capacity.control_jitter)
    dark = min(change.reconfiguration for change in work.changes)
    text = f"{work.name}: a reconfiguration of {format_duration(dark)} must take {format_duration(least)} here"
    return Limit(work.name, least / dark if dark else math.inf, text, "make reconfigurations longer")


def _steps(work: Work, item: Item, terms: Terms) -> Limit:
    count = item.steps(terms.buckets)
    text = _cost_text(f"{work.name}: {item.name}", count, item.seconds, terms)
    advice = "use larger sizes, fewer chunks or fewer buckets"
    return Limit(item.name, _tdf(count, item.seconds, terms), text, advice)


def _cost_text(subject: str, steps: float, ideal: float, terms: Terms) -> str:
    cost = f"{steps:.0f} dependent step{'' if steps == 1 else 's'} at {format_duration(terms.capacity.step_cost)}"
    return f"{subject}: {cost} must stay under {STEP_SHARE:.0%} of an ideal of {format_duration(ideal)}"


def _tdf(steps: float, seconds: float, terms: Terms) -> float:
    """steps * cost <= share * seconds * TDF, solved for TDF."""
    return steps * terms.capacity.step_cost / (STEP_SHARE * seconds) if seconds else math.inf


def charged_shares(work: Work, sigma: float, frame: int) -> dict[str, float]:
    """By phase, the share of its bytes that is in messages of less than one frame after sigma."""
    shares = {}
    for phase, sizes in _phases(work.items).items():
        shares[phase] = float(sizes[sizes < frame * sigma].sum() / sizes.sum())
    return shares


def _coalesced(work: Work, item: Item, terms: Terms) -> Limit:
    size = smallest_kept(item.messages, STEP_SHARE)
    text = f"{work.name}: {item.name}: coalesced messages of {format_size(size)} must fill {COALESCED_MESSAGE} frames"
    advice = "coalesce them in fewer rounds, or use more steps"
    return Limit(item.name, terms.beta * terms.frame * COALESCED_MESSAGE / size, text, advice)


def _sent(work: Work, items: Iterable[Item], terms: Terms) -> Iterator[Limit]:
    """By phase: all but 5 % of the bytes must be in messages of at least one MTU after sigma, where sigma can do it."""
    for phase, sizes in _phases(items).items():
        size = smallest_kept(sizes, STEP_SHARE)
        text = (
            f"{work.name}: {phase}: messages of {format_size(size)} must fill a frame, or more than {STEP_SHARE:.0%} "
            "of the bytes would not be sent"
        )
        limit = Limit(phase, terms.beta * terms.frame / size, text, "use larger messages or small_messages: send")
        if not limit.over(terms.beta):
            yield limit


def _phases(items: Iterable[Item]) -> dict[str, Floats]:
    """By phase, the sizes of all its messages."""
    phases: dict[str, list[Floats]] = {}
    for item in items:
        phases.setdefault(item.phase, []).append(item.messages)
    return {phase: np.concatenate(parts) for phase, parts in phases.items()}


def smallest_kept(sizes: Floats, share: float) -> float:
    """The size such that smaller messages hold at most `share` of all bytes; the largest such size."""
    ordered = np.sort(sizes)
    smaller = np.cumsum(ordered) - ordered
    values, first = np.unique(ordered, return_index=True)
    return float(values[smaller[first] <= share * ordered.sum()].max())
