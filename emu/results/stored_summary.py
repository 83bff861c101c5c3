"""The summary of a run as a file beside its tables, so that it can be shown again exactly as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from emu.errors import InputError
from emu.outcome import Outcome
from emu.results.summary import RunSummary, summarise

SUMMARY_FILE: Final = "summary.json"
_SUMMARY: TypeAdapter[RunSummary] = TypeAdapter(RunSummary)


def summary_text(outcome: Outcome) -> str:
    """The summary as JSON; without its directory, which may be moved."""
    return _SUMMARY.dump_json(replace(summarise(outcome), directory=""), indent=2).decode() + "\n"


def read_summary(directory: Path) -> RunSummary:
    """The summary of the run in a directory, with that directory's name.

    Raises InputError for a directory without one (no run, one that has not ended, or one of an earlier version).
    """
    path = directory / SUMMARY_FILE
    try:
        stored = _SUMMARY.validate_json(path.read_bytes())
    except OSError as error:
        hint = "a run that has not ended has none, nor has one of an earlier version"
        raise InputError(f"{directory} is no whole run directory: {path.name}: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {where}: {first['msg']}", hint="another version of emu wrote it") from error
    return replace(stored, directory=str(directory))
