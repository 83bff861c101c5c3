"""Errors that end the program: each is one message a user can act on, and carries its exit status."""

from __future__ import annotations

from collections.abc import Sequence

KeyPath = tuple[str | int, ...]
"""Where something stands in a scenario: keys and list positions from the top, as in ("fabrics", 1, "k")."""

_LONGEST = 1000


class EmuError(Exception):
    """Whatever stops emu and is not a defect of it."""

    exit_status = 1


class InputError(EmuError):
    """A scenario, flow list or option that cannot be used as it is.

    file: as the user wrote it; "" when the input came from no file (then an option, say).
    line, column: from 1; None when the place is not known.
    key: where in the scenario, empty for the file as a whole.
    problem: what is wrong, echoing the value.
    hint: what to do instead, or "".
    more: how many further errors the same input has.

    `str()` is all of this on one line: `scenario.yaml:12: workload.steps[1].size: problem; hint (and 2 more)`.
    """

    exit_status = 2

    def __init__(
        self,
        problem: str,
        *,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        key: KeyPath = (),
        hint: str = "",
        more: int = 0,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.hint = hint
        self.more = more
        super().__init__(self._message())

    def _message(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        parts = [part for part in (place, dotted(self.key), self.problem) if part]
        message = ": ".join(parts) + (f"; {self.hint}" if self.hint else "")
        return one_line(message) + (f" (and {self.more} more)" if self.more else "")


def dotted(key: Sequence[str | int]) -> str:
    """A key path as users read it: `workload.steps[1].size`."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def one_line(text: str, longest: int = _LONGEST) -> str:
    """`text` with line breaks and control characters made visible, cut at `longest` characters."""
    clean = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: longest + 1])
    return clean if len(clean) <= longest else f"{clean[: longest - 3]}..."
