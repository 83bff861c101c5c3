"""Reports: one HTML file for a run, or for a comparison of several, that opens anywhere without a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from emu.errors import EmuError, InputError

REPORT_FILE = "report.html"
"""The report of a run, in its directory."""


def write_report(runs: Sequence[Path], out: Path) -> Path:
    """Write the report of some run directories, one run or several side by side, and return where it is.

    out: the HTML file; one that is there is replaced, whole or not at all.
    Raises InputError for a directory that holds no whole run, EmuError if the file cannot be written.
    """
    from emu.report.page import page  # noqa: PLC0415 - pandas, plotly and jinja2 take most of a second
    from emu.report.series import load_series  # noqa: PLC0415

    if not runs:
        raise InputError("there is no run to report", hint="name a run directory")
    text = page(*load_series(runs))
    draft = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except OSError as error:
        raise EmuError(f"cannot write the report {out}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    return out
