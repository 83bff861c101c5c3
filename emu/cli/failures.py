"""From whatever stops a command to one line on standard error and an exit status; never a traceback by surprise."""

from __future__ import annotations

import errno
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from emu.cli.exits import Exit
from emu.errors import EmuError, one_line

DEBUG: Final = "--debug"
_OF_THE_MACHINE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN}
)
"""What no program can help: disk, memory, processes or open files are used up, or the medium fails."""


def guarded(command: Callable[[], Any], arguments: list[str]) -> int:
    """Run a command and return its exit status; a command that returns none has succeeded."""
    try:
        status = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", Exit.INTERRUPTED)
    except EmuError as error:
        return _fail(str(error), error.exit_status)
    except BrokenPipeError:
        return _close_output()
    except Exception as error:
        return _stopped(error, arguments)
    if status == Exit.INTERRUPTED and not isinstance(status, Exit):
        return _fail("interrupted", Exit.INTERRUPTED)  # the parser caught it and made it a bare status
    return status if isinstance(status, int) else Exit.VALID


def _stopped(error: Exception, arguments: list[str]) -> int:
    """What the parser of the command line raises to end the program, the machine's trouble, or a defect."""
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        _close_output()
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}", Exit.ERROR)
    if hasattr(error, "format_message"):  # a usage error; where its class lives depends on typer's version
        return _fail(f"{_plain(error.format_message())}; see --help", Exit.INPUT)
    code = getattr(error, "exit_code", None)
    if type(error).__name__ == "Abort" or code == Exit.INTERRUPTED:
        return _fail("interrupted", Exit.INTERRUPTED)
    if isinstance(code, int):
        return code
    return _defect(error, arguments)


def _plain(message: str) -> str:
    """What the parser says, without the name of the exception behind it and ready to be continued."""
    return message.replace(": Value error, ", ": ").rstrip(".")


def _defect(error: Exception, arguments: list[str]) -> int:
    details = "".join(traceback.format_exception(error))
    what = f"{type(error).__name__}: {error}"
    if DEBUG in arguments:
        sys.stderr.write(details)
        return _fail(what, Exit.ERROR)
    return _fail(f"{what}; this is a defect of emu; details in {_keep(details)}", Exit.ERROR)


def _keep(details: str) -> str:
    """Write the details to a file; its name."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="emu-defect-", suffix=".txt", delete=False) as file:
            file.write(details)
        return file.name
    except OSError:
        return f"the output of the same command with {DEBUG}"


def _close_output() -> int:
    """Whoever read the output has gone; keep the interpreter from saying so at its end."""
    with Path("/dev/null").open("w") as nowhere:
        sys.stdout = nowhere
    return Exit.ERROR


def _fail(message: str, status: int) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"emu: error: {one_line(message)}\n")
    return status
