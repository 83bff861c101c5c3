"""Numbers on their way into a page: short enough to be many, and plain JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def short(value: float | None, digits: int = 5) -> float | None:
    """A number to so many significant digits; None for none, and for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def shorts(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Numbers to so many significant digits each."""
    return [short(float(value), digits) for value in values]


def script_json(data: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
