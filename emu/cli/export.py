"""`emu export`: a run in the formats that other tools read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from emu.cli.exits import Exit
from emu.cli.options import Debug, RunDirectory
from emu.cli.output import messages
from emu.errors import EmuError, InputError
from emu.export.names import MEANINGS

To = Annotated[
    str,
    typer.Option(
        metavar="FORMAT", help=f"{', '.join(MEANINGS)}.", autocompletion=lambda: list(MEANINGS), show_default=False
    ),
]
OutFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Default: standard output, for all but pcapng.", show_default=False)
]
OneFabric = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this fabric. Default: all of the run's.", show_default=False)
]
OneRepeat = Annotated[
    int | None, typer.Option(metavar="N", help="Only this repeat, from 1. Default: all.", show_default=False)
]


def export(
    run: RunDirectory,
    to: To,
    out: OutFile = None,
    fabric: OneFabric = None,
    repeat: OneRepeat = None,
    debug: Debug = False,
) -> int:
    """Write a run in the format of another tool: collectives, flows, a timeline, packets or metrics.

    \b
    Examples:
      emu export runs/first --to chrome-trace --out trace.json
      emu export runs/first --to nccl-tests --fabric hybrid

    Each format's columns and units are in docs/exports.md.

    Exit status: 0; 2 for an unknown format, or a run that has nothing for it; 1 if the file cannot be written.
    """
    from emu.export.formats import BINARY, check_format  # noqa: PLC0415 - costs time that `emu --help` should not take
    from emu.export.formats import export as write  # noqa: PLC0415

    check_format(to)
    if out is None and to in BINARY and sys.stdout.isatty():
        raise InputError(f"{to} is no text to show on a terminal", hint="name a file with --out")
    with _opened(out) as stream:
        notes = write(run, to, stream, fabric=fabric, repeat=repeat)
    for note in notes:
        messages().print(note, markup=False, soft_wrap=True)
    return Exit.VALID


@contextmanager
def _opened(out: Path | None) -> Iterator[BinaryIO]:
    """The file to write, which appears whole or not at all; or the standard output.

    Raises InputError for a file that cannot be made, EmuError if the disk does not take it.
    """
    if out is None:
        yield sys.stdout.buffer
        return
    if out.is_dir():
        raise InputError(f"{out} is a directory", hint="name a file with --out")
    draft = out.with_name(f"{out.name}.part")
    try:
        with _file(draft, out) as stream:
            yield stream
        draft.replace(out)
    except OSError as error:
        if error.filename is not None and Path(error.filename) != draft:
            raise
        raise EmuError(f"cannot write {out}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _file(draft: Path, out: Path) -> BinaryIO:
    try:
        return draft.open("wb")
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}", hint="name another file with --out") from error
