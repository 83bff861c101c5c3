"""Which runs a directory holds, finished or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from emu.errors import InputError
from emu.results.directory import MANIFEST, read_manifest
from emu.results.manifest import Manifest
from emu.verdict.levels import Level

LABS = "labs"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run directory.

    state: `done`; `partial` (stopped, what was measured is there); `unfinished` (no manifest: it runs, or was killed);
    `unreadable` (its manifest is no such thing). problem: why it is unreadable, or "".
    began: for an unfinished one, when its directory was last changed. fabrics: verdict by name, None if not judged.
    """

    directory: str
    state: Literal["done", "partial", "unfinished", "unreadable"]
    began: datetime
    name: str = ""
    verdict: Level | None = None
    fabrics: tuple[tuple[str, Level | None], ...] = ()
    wall: float | None = None
    problem: str = ""


def list_runs(parent: Path) -> list[ListedRun]:
    """The runs in a directory, oldest first; or the directory itself, if it is a run.

    Raises InputError if there is no such directory.
    """
    try:
        inside = sorted(path for path in parent.iterdir() if path.is_dir())
    except OSError as error:
        raise InputError(f"{parent}: {error.strerror}", hint="name a directory that runs were written to") from error
    found = [parent] if _is_run(parent) else [path for path in inside if _is_run(path)]
    return sorted((_listed(path) for path in found), key=lambda run: run.began)


def _is_run(path: Path) -> bool:
    """Labs come first in a run directory, and the manifest last."""
    return (path / MANIFEST).is_file() or (path / LABS).is_dir()


def _listed(path: Path) -> ListedRun:
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if not (path / MANIFEST).is_file():
        labs = tuple((lab.name, None) for lab in sorted((path / LABS).iterdir()))
        return ListedRun(str(path), "unfinished", changed, fabrics=labs)
    try:
        return _finished(path, read_manifest(path))
    except InputError as error:
        return ListedRun(str(path), "unreadable", changed, problem=error.problem)


def _finished(path: Path, manifest: Manifest) -> ListedRun:
    return ListedRun(
        directory=str(path),
        state="partial" if manifest.partial else "done",
        began=manifest.began,
        name=manifest.name,
        verdict=manifest.verdict,
        fabrics=tuple((fabric.name, fabric.verdict.level) for fabric in manifest.fabrics),
        wall=manifest.wall_s,
    )
