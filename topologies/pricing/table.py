"""Price tables: dollars and watts of parts by rate, from a TOML file with its source.

The tables that come along are in topologies/data; a user's own has the same form and is named by its path.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NoReturn

from topologies.pricing.parts import PART_KINDS, Part, PartKind

Quantity = Literal["dollars", "watts"]
ANY = "any"
_RATE = re.compile(r"(\d+(?:\.\d+)?)G\Z")
_GIGA = 1_000_000_000

Column = Mapping[int | None, float]
"""By rate in bit/s, or under None for every rate: what one part costs or draws."""


class PriceError(ValueError):
    """A price table that cannot be used, or has no price for a part.

    file, line, key: where, as far as it is known. `str()` is all of it on one line.
    """

    def __init__(self, problem: str, *, file: str = "", line: int | None = None, key: tuple[str, ...] = ()) -> None:
        self.problem, self.file, self.line, self.key = problem, file, line, key
        place = f"{file}:{line}" if file and line else file
        super().__init__(": ".join(text for text in (place, ".".join(key), problem) if text))


@dataclass(frozen=True, slots=True)
class PriceTable:
    """What parts cost and draw.

    name: of a table that comes along, or the file's.
    source: who says so. notes: what a reader of a bill should know of the table.
    dollars, watts: by kind of part; a kind that is not there is not in the table at all.
    """

    name: str
    title: str
    source: str
    notes: tuple[str, ...] = ()
    dollars: Mapping[PartKind, Column] = field(default_factory=dict)
    watts: Mapping[PartKind, Column] = field(default_factory=dict)

    def of(self, quantity: Quantity, part: Part) -> float | None:
        """Dollars or watts of one part; None if the table has nothing for its kind.

        Raises PriceError if it has the kind but not the rate.
        """
        column = self._columns(quantity).get(part.kind)
        if column is None:
            return None
        if (value := column.get(None, column.get(part.rate))) is None:
            raise PriceError(
                f"table {self.name} has no {quantity} for {words(part.kind)} of {part.rate / _GIGA:g} Gb/s; it has "
                f"{self.rates(quantity, part.kind)}"
            )
        return value

    def between(self, quantity: Quantity, part: Part) -> float | None:
        """Like `of`, but on a straight line between the nearest two rates; None outside of them, too."""
        column = self._columns(quantity).get(part.kind, {})
        if None in column:
            return column[None]
        rates = sorted(rate for rate in column if rate is not None)
        if not rates or not rates[0] <= part.rate <= rates[-1]:
            return None
        above = next(rate for rate in rates if rate >= part.rate)
        below = max(rate for rate in rates if rate <= part.rate)
        if above == below:
            return column[above]
        share = (part.rate - below) / (above - below)
        return column[below] + share * (column[above] - column[below])

    def rates(self, quantity: Quantity, kind: PartKind) -> str:
        """The rates that it has for a kind, in words."""
        rates = sorted(rate for rate in self._columns(quantity).get(kind, {}) if rate is not None)
        return ", ".join(f"{rate / _GIGA:g}G" for rate in rates) or "none"

    def _columns(self, quantity: Quantity) -> Mapping[PartKind, Column]:
        return self.dollars if quantity == "dollars" else self.watts


def words(kind: PartKind) -> str:
    """A kind of part as people say it."""
    return {"nic": "NICs", "eps_port": "EPS ports", "ocs_port": "OCS ports"}.get(kind, f"{kind.replace('_', ' ')}s")


def table_names() -> tuple[str, ...]:
    """The tables that come along, sorted."""
    names = (entry.name for entry in resources.files("topologies").joinpath("data").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load_table(name: str) -> PriceTable:
    """The table of that name, or of that file if it ends in .toml or has a slash.

    Raises PriceError for an unknown name, and with file, line and key for a file that is no price table.
    """
    if name.endswith(".toml") or "/" in name:
        try:
            return read_table(Path(name).read_text(encoding="utf-8"), name=name, file=name)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise PriceError(f"cannot be read: {reason}", file=name) from error
    if name not in (known := table_names()):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}, or the path of a .toml file"
        raise PriceError(f"there is no price table {name!r}; {hint}")
    text = resources.files("topologies").joinpath(f"data/{name}.toml").read_text(encoding="utf-8")
    return read_table(text, name=name, file=f"{name}.toml")


def read_table(text: str, *, name: str, file: str) -> PriceTable:
    """The table that a TOML text holds. Raises PriceError with the file, and line and key as far as they are known."""
    try:
        return _Reader(text, file).table(name)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\s*\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else None
        raise PriceError(str(error).replace(found[0] if found else "", ""), file=file, line=line) from error


class _Reader:
    """Checks what a TOML file says, and knows the line of each key."""

    def __init__(self, text: str, file: str) -> None:
        self._file, self._lines = file, _lines(text)
        self._data = tomllib.loads(text)

    def table(self, name: str) -> PriceTable:
        known = ("title", "source", "notes", "dollars", "watts")
        for key in self._data:
            self._known((key,), key, known)
        if not self._data.get("dollars"):
            self._refuse(("dollars",), "is required: a section such as [dollars.nic] with lines such as 100G = 659")
        return PriceTable(
            name,
            self._text("title", name),
            self._text("source", ""),
            self._notes(),
            self._columns("dollars"),
            self._columns("watts"),
        )

    def _columns(self, quantity: Quantity) -> dict[PartKind, Column]:
        columns = self._data.get(quantity, {})
        if not isinstance(columns, dict):
            self._refuse((quantity,), f"must be sections such as [{quantity}.nic]")
        for kind in columns:
            self._known((quantity, kind), kind, PART_KINDS)
        return {kind: self._column((quantity, kind), columns[kind]) for kind in PART_KINDS if kind in columns}

    def _column(self, key: tuple[str, str], written: Any) -> Column:  # noqa: ANN401 - whatever the TOML holds
        if not isinstance(written, dict) or not written:
            self._refuse(key, "must be a section with lines such as 100G = 659, or any = 520")
        if ANY in written and len(written) > 1:
            self._refuse((*key, ANY), "leaves no room for other rates")
        return {self._rate((*key, rate)): self._number((*key, rate), value) for rate, value in written.items()}

    def _rate(self, key: tuple[str, str, str]) -> int | None:
        if key[-1] == ANY:
            return None
        match = _RATE.match(key[-1])
        if match is None or not float(match[1]):
            self._refuse(key, f"{key[-1]!r} is no rate; write 400G or any")
        return round(float(match[1]) * _GIGA)

    def _number(self, key: tuple[str, ...], value: Any) -> float:  # noqa: ANN401 - whatever the TOML holds
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            self._refuse(key, f"must be a number from 0 on, not {value!r}")
        return float(value)

    def _text(self, key: str, default: str) -> str:
        value = self._data.get(key, default)
        if not isinstance(value, str):
            self._refuse((key,), f"must be text, not {value!r}")
        return value

    def _notes(self) -> tuple[str, ...]:
        notes = self._data.get("notes", [])
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            self._refuse(("notes",), "must be a list of texts")
        return tuple(notes)

    def _known(self, key: tuple[str, ...], word: str, known: tuple[str, ...]) -> None:
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(known)}"
            self._refuse(key, f"there is no such key; {hint}")

    def _refuse(self, key: tuple[str, ...], problem: str) -> NoReturn:
        line = next((self._lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self._lines), None)
        raise PriceError(problem, file=self._file, line=line, key=key)


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The line where each section and key of a TOML text first stands, for messages."""
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            key = section = _words(header[1])
        elif assigned := re.match(r"\s*([^=#]+?)\s*=", line):
            key = (*section, *_words(assigned[1]))
        else:
            continue
        for length in range(1, len(key) + 1):
            lines.setdefault(key[:length], number)
    return lines


def _words(dotted: str) -> tuple[str, ...]:
    """The parts of a TOML key, without quotes."""
    return tuple(part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", dotted))
