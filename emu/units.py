"""Quantities with units: parsing them exactly, writing them exactly, and showing them to people.

Three quantities, one plain Python number each:

- a rate, bit/s as int: `400Gbps`, `400Gb/s`, `20Mbit/s`, and in bytes `50GB/s` (= 400 Gb/s);
- a size, bytes as int: `16GiB` (binary), `2MB` (decimal), `512B`;
- a duration, seconds as float: `10ms`, `2s`, `5us`, `1.5min`, `1h`.

Case tells bits (b) from bytes (B) and mega (M) from milli (m), so it is never guessed. A number without a unit is
refused, except 0. Arithmetic is exact (fractions): a size or rate that is not whole is refused, not rounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

MAX_RATE: Final = 10**16
"""10 Pb/s: above any link, below what a float holds exactly."""
MAX_SIZE: Final = 2**60
"""1 EiB."""
MAX_DURATION: Final = 10**9
"""About 32 years, in seconds."""
MIN_DURATION: Final = Fraction(1, 10**12)
"""A picosecond, the finest that flow lists use; shorter ones, other than 0, are refused."""


class UnitError(ValueError):
    """Text that is not the quantity it should be; the message says what to write."""


_SI = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"ki": 2**10, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_PREFIXES = _SI | _BINARY
_BITS_PER_SECOND = ("b/s", "bps", "bit/s", "bits/s")
_BYTES_PER_SECOND = ("B/s", "Bps", "byte/s", "bytes/s")
_BYTES = ("B", "byte", "bytes")
_BITS = ("b", "bit", "bits")


def _scaled(names: tuple[str, ...], factor: int) -> dict[str, Fraction]:
    return {prefix + name: Fraction(size * factor) for prefix, size in _PREFIXES.items() for name in names}


_RATES: Final[Mapping[str, Fraction]] = _scaled(_BITS_PER_SECOND, 1) | _scaled(_BYTES_PER_SECOND, 8)
_SIZES: Final[Mapping[str, Fraction]] = _scaled(_BYTES, 1)
_SIZES_IN_BITS: Final[Mapping[str, Fraction]] = _scaled(_BITS, 1)
_DURATIONS: Final[Mapping[str, Fraction]] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\u00b5s": Fraction(1, 10**6),  # the micro sign
    "\u03bcs": Fraction(1, 10**6),  # the Greek letter mu
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_QUANTITY = re.compile(r"\s*(-?)([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z\u00b5\u03bc/]{0,12})\s*", re.ASCII)


def parse_rate(value: object) -> int:
    """`400Gbps` as bit/s. Raises UnitError."""
    return _whole(value, _quantity(value, _RATES, "400Gbps", MAX_RATE), "bit/s", "b/s")


def parse_size(value: object) -> int:
    """`16GiB` as bytes. Raises UnitError; sizes in bits are refused, since nearly always bytes were meant."""
    return _whole(value, _quantity(value, _SIZES, "16MiB", MAX_SIZE), "bytes", "B")


def parse_duration(value: object) -> float:
    """`10ms` as seconds, the float nearest to it. Raises UnitError."""
    seconds = _quantity(value, _DURATIONS, "10ms", MAX_DURATION)
    if 0 < seconds < MIN_DURATION:
        raise UnitError(f"{_echo(str(value))} is out of range")
    return float(seconds)


def _quantity(value: object, units: Mapping[str, Fraction], example: str, most: int) -> Fraction:
    """The number in base units that `value` stands for."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"needs a number with a unit, e.g. {example}")
    text = str(value) if isinstance(value, str | float) or abs(value) < 10**30 else "a number of over 30 digits"
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"{_echo(text)} is not a number with a unit, e.g. {example}")
    sign, digits, unit = match.groups()
    number = Fraction(digits)
    if sign and number:
        raise UnitError(f"{_echo(text)} must not be negative")
    if not unit and number == 0:
        return number
    result = number * _factor(text, digits, unit, units, example)
    if result > most:
        raise UnitError(f"{_echo(text)} is out of range")
    return result


def _factor(text: str, digits: str, unit: str, units: Mapping[str, Fraction], example: str) -> Fraction:
    if unit in units:
        return units[unit]
    if not unit:
        raise UnitError(f"{text.strip()} needs a unit, e.g. {example}")
    if units is _SIZES and unit in _SIZES_IN_BITS:
        raise UnitError(_bits_given(text.strip(), digits, unit))
    meant = _meant(unit, units)
    advice = f"did you mean {' or '.join(digits + name for name in meant)}?" if meant else f"write e.g. {example}"
    raise UnitError(f"{_echo(text)} has no unit that fits here; {advice}")


def _bits_given(text: str, digits: str, unit: str) -> str:
    """A size in bits is refused: bytes were likely meant, and only the user knows."""
    message = f"{text} is in bits, and sizes are in bytes: write {digits}{unit[: unit.index('b')]}B if bytes were meant"
    in_bytes = Fraction(digits) * _SIZES_IN_BITS[unit] / 8
    return f"{message}, {write_size(int(in_bytes))} if not" if in_bytes.denominator == 1 else message


def _meant(unit: str, units: Mapping[str, Fraction]) -> list[str]:
    """Units that differ from `unit` in case only, or that complete it (400G, 400Gb, 5m)."""
    same = [name for name in units if name.lower() == unit.lower()]
    ends = {"/s", "ps", "b/s", "B/s", "B", "iB", "in"}
    return (same or [name for name in units if name.startswith(unit) and name[len(unit) :] in ends])[:2]


def _whole(value: object, number: Fraction, noun: str, unit: str) -> int:
    if number.denominator != 1:
        near = max(1, round(number))
        raise UnitError(f"{_echo(str(value))} is not a whole number of {noun}: write {near}{unit}")
    return int(number)


def _echo(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


# -- writing exactly: what `parse_` reads back to the same number -----------------------------------------------------


def write_rate(rate: int) -> str:
    """The shortest exact form, as in `400Gbps`."""
    return _exact(rate, {"Tbps": 10**12, "Gbps": 10**9, "Mbps": 10**6, "kbps": 10**3, "bps": 1})


def write_size(size: int) -> str:
    """The exact size in the largest unit that divides it, binary before decimal: `16GiB`, `2MB`, `1001B`."""
    binary = {f"{prefix}iB": 2**power for prefix, power in (("T", 40), ("G", 30), ("M", 20), ("K", 10))}
    return _exact(size, binary | {"GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1})


def write_duration(seconds: float) -> str:
    """The exact float, in the largest unit whose form is as short as any: `10ms`, `0.123456s`."""
    if seconds == 0:
        return "0s"
    value = Decimal(repr(seconds))
    forms = [f"{_plain(value * 10**power)}{unit}" for unit, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9))]
    return min((form for form in forms if parse_duration(form) == seconds), key=len)


def _exact(number: int, units: Mapping[str, int]) -> str:
    if number == 0:
        return f"0{list(units)[-1]}"
    return next(f"{number // size}{unit}" for unit, size in units.items() if number % size == 0)


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# -- showing: four significant digits ----------------------------------------------------------------------------------


def format_rate(rate: float) -> str:
    """A rate for people: `400 Gb/s`."""
    return _human(rate, {"Pb/s": 1e15, "Tb/s": 1e12, "Gb/s": 1e9, "Mb/s": 1e6, "kb/s": 1e3, "b/s": 1.0})


def format_size(size: float) -> str:
    """A size for people, in binary units: `15.26 GiB`."""
    names = ("PiB", "TiB", "GiB", "MiB", "KiB", "B")
    return _human(size, {name: 2.0 ** (10 * (5 - place)) for place, name in enumerate(names)})


def format_duration(seconds: float) -> str:
    """A duration for people: `621.3 ms`, `12.5 s`; the unit is the largest that keeps the number at 1 or above."""
    return _human(seconds, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9})


def _human(value: float, units: Mapping[str, float]) -> str:
    """`value` to four significant digits in the largest unit in which the rounded number is at least 1."""
    if not math.isfinite(value):
        return str(value)
    *_, smallest = units
    if value == 0:
        return f"0 {smallest}"
    for unit, size in units.items():
        rounded = Decimal(f"{value / size:.4g}")
        if abs(rounded) >= 1 or unit == smallest:
            return f"{_plain(rounded)} {unit}"
    raise AssertionError("the loop ends at the smallest unit")
