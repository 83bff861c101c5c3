"""Numbers as the tables of a report write them; a dash where there is none."""

from __future__ import annotations

import math

from emu.units import format_duration, format_size

NONE = "–"


def duration(seconds: float | None) -> str:
    """`621.3 ms`."""
    return NONE if _missing(seconds) else format_duration(seconds).replace("us", "µs") if seconds else "0 s"


def size(value: float | None) -> str:
    """`15.26 GiB`."""
    return NONE if _missing(value) else format_size(value or 0.0)


def bandwidth(value: float | None) -> str:
    """Byte/s as nccl-tests writes them: `48.62 GB/s`."""
    return NONE if _missing(value) else f"{(value or 0.0) / 1e9:.4g} GB/s"


def ratio(value: float | None) -> str:
    """`1.034`."""
    return NONE if _missing(value) else f"{value:.3f}"


def percent(value: float | None) -> str:
    """`63.5 %`."""
    if _missing(value):
        return NONE
    share = 100 * (value or 0.0)
    return f"{share:.0f} %" if share >= 99.95 or share == 0 else f"{share:.2g} %" if share < 10 else f"{share:.1f} %"


def count(value: float | None) -> str:
    """`100 000`, with thin spaces."""
    return NONE if _missing(value) else f"{round(value or 0.0):,}".replace(",", "\u2009")


def _missing(value: float | None) -> bool:
    return value is None or not math.isfinite(value)
