"""The one table of thresholds: from which numbers on a run is DEGRADED, and from which INVALID.

`docs/verdict.md` shows this table; it is written from here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Final, NamedTuple

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from emu.verdict.levels import Level


class Band(NamedTuple):
    """A number within `good` is VALID, within `bearable` DEGRADED, beyond it INVALID. Both ends belong to it."""

    good: tuple[float, float]
    bearable: tuple[float, float]

    def level(self, value: float) -> Level:
        """What a number is. One that is not a number is INVALID."""
        if self.good[0] <= value <= self.good[1]:
            return "VALID"
        return "DEGRADED" if self.bearable[0] <= value <= self.bearable[1] else "INVALID"


def at_most(good: float, bearable: float = math.inf) -> Band:
    """The band of a number that should be small."""
    return Band((-math.inf, good), (-math.inf, bearable))


def at_least(good: float, bearable: float) -> Band:
    """The band of a number that should be large."""
    return Band((good, math.inf), (bearable, math.inf))


@dataclass(frozen=True, config=ConfigDict(use_attribute_docstrings=True))
class Thresholds:
    """Every number that a verdict depends on. Shares are fractions of 1."""

    rate_ratio: Band = Band((0.97, 1.03), (0.95, 1.05))
    """A link's calibrated rate by its declared one. Goodput of full frames counts preamble, gap and FCS, so it is 1."""

    shaper_error: Band = at_most(0.001, 0.001)
    """Relative difference between the rate that a link's shaper says and the declared one; rounding is far below it."""

    cross_check: Band = at_most(0.05, 0.15)
    """Relative difference between iperf3 and emu's own traffic on one pair of hosts."""

    idle_before: Band = at_least(0.30, 0.03)
    """Share of all processors' time that was idle before the lab was calibrated: others use the machine below it."""

    idle_during: Band = at_least(0.10, 0.03)
    """The same while the workload ran, the lab's own work included."""

    loop_lag: Band = at_most(0.005, 0.020)
    """Wall seconds by which the traffic's event loop was late, 99th percentile of a repeat."""

    completion: Band = Band((0.98, 1.10), (0.95, 1.30))
    """Measured by ideal time, median over the repeats: of each collective, of each phase with bytes but without
    collectives, and of the whole run where the workload has no collective."""

    receive_drops: Band = at_most(0, 0.01)
    """Frames lost at Open vSwitch's AF_PACKET sockets, by the segments that the workload needs."""

    switch_drops: Band = at_most(0, 0.01)
    """Frames that Open vSwitch lost when it sent to a link, by the frames sent there."""

    socket_buffer: Band = at_least(1 << 20, 212_992)
    """Bytes of the smallest buffer of those sockets, as the kernel reports it (twice what was asked for). The kernel's
    own default is 212992; whatever is below that was shrunk."""

    unexplained_retransmits: Band = at_most(0.005)
    """Segments sent again that no counted drop explains, by the segments that the workload needs."""

    retransmits_floor: int = 20
    """So many unexplained ones never count: TCP's probes of a tail."""

    path_error: Band = at_most(0.05, 0.05)
    """Payload on a link against what the routes put there, relative to the latter, beyond the slack of the next four
    rows: more is traffic on a wrong path."""

    path_floor: float = 0.01
    """Slack of every link, as a share of the most that a link of the fabric should carry."""

    path_floor_frames: int = 8
    """The same in full frames; the larger one counts."""

    path_resent: float = 0.10
    """Retransmitted bytes are slack on links that carry traffic, up to this share of what is expected there."""

    path_slip: float = 0.10
    """Slack instead of `path_floor` if circuits changed under traffic: what moved before one differs a little."""

    late_connections: Band = at_most(0)
    """Connections that should have been open before time zero and were not."""

    change_late: Band = at_most(0.10, 1.0)
    """By how much a change of circuits missed its instant, by its dark time."""

    dark_error: Band = at_most(0.25)
    """Relative difference between the dark time that was asked for and the control plane's."""

    data_plane_error: Band = at_most(0.25)
    """The same of the data plane's, beyond what the distance of probe frames leaves open. Not judged where it was not
    measured; where probes show that a circuit did not go dark, or did not light, a run is INVALID."""

    charged_share: Band = at_most(0.05)
    """Share of a phase's fabric bytes that were too small to send and charged in time instead."""


THRESHOLDS: Final = Thresholds()


def table() -> Iterator[tuple[str, str, str, str]]:
    """The table for people: name, VALID if, INVALID if (DEGRADED lies between), what the number is."""
    documented = TypeAdapter(Thresholds).json_schema()["properties"]
    for field in fields(Thresholds):
        value = getattr(THRESHOLDS, field.name)
        good, bad = _range(value) if isinstance(value, Band) else (f"{value:g}", "")
        yield field.name, good, bad, " ".join(documented[field.name]["description"].split())


def _range(band: Band) -> tuple[str, str]:
    low, high = band.good
    bad_low, bad_high = band.bearable
    good = [f">= {low:.9g}"] * (low > -math.inf) + [f"<= {high:.9g}"] * (high < math.inf)
    bad = [f"< {bad_low:.9g}"] * (bad_low > -math.inf) + [f"> {bad_high:.9g}"] * (bad_high < math.inf)
    return " and ".join(good), " or ".join(bad) or "never"
