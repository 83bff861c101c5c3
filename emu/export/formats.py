"""Every format that a run can be exported to, and the one call that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from emu.errors import InputError
from emu.export import chrome, hpcc, nccl_json, nccl_table, packets, prometheus
from emu.export.names import MEANINGS
from emu.export.selection import Selection, select
from emu.scenario.fields import nearest

Writer = Callable[[Selection, BinaryIO], None]

WRITERS: Final[Mapping[str, Writer]] = {
    "nccl-tests": nccl_table.write,
    "nccl-json": nccl_json.write,
    "hpcc-fct": hpcc.write,
    "chrome-trace": chrome.write,
    "pcapng": packets.write,
    "prometheus": prometheus.write,
}
BINARY: Final = frozenset({"pcapng"})
"""Formats that are no text."""


def check_format(name: str) -> None:
    """Raise InputError, with the valid names, for a format that does not exist."""
    if name not in MEANINGS:
        raise InputError(f"there is no export to {name!r}", hint=_hint(name))


def export(
    directory: Path, to: str, stream: BinaryIO, *, fabric: str | None = None, repeat: int | None = None
) -> list[str]:
    """Write a run in another tool's format; returns what a user should know of it, a line each.

    to: a name of `emu.export.names.MEANINGS`. fabric, repeat: only these; by default all that were run.

    Raises InputError for what cannot be exported: no run directory, no such format, fabric or repeat, or nothing in the
    run that the format could hold. Nothing is written to `stream` then.
    """
    check_format(to)
    selection = select(directory, fabric, repeat)
    WRITERS[to](selection, stream)
    return selection.notes


def _hint(name: str) -> str:
    hint = nearest(name, MEANINGS)
    valid = f"valid: {', '.join(MEANINGS)}"
    return hint if hint.startswith("valid") else f"{hint} {valid}"
