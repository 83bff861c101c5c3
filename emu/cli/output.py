"""Where commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich.console import Console


def results() -> Console:
    """For what the user asked for."""
    return Console(highlight=False)


def messages() -> Console:
    """For progress and remarks."""
    return Console(stderr=True, highlight=False)


def write_json(value: Any, kind: Any = Any) -> None:  # noqa: ANN401 - any value, and its type
    """Print a value as JSON. kind: its type, where that says more than the value (a dataclass, say)."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - costs a tenth of a second

    sys.stdout.write(TypeAdapter(kind).dump_json(value, indent=2).decode() + "\n")


@contextmanager
def plugins_kept_apart() -> Iterator[None]:
    """While the user's own code may run: what it prints must not get between a script and the results."""
    with redirect_stdout(sys.stderr):
        yield
