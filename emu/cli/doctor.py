"""`emu doctor`: what a lab needs of this machine, each failure with its one-line fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from emu.cli.exits import Exit
from emu.cli.lines import show_line
from emu.cli.options import Debug
from emu.cli.output import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.doctor import Check

_NAME_WIDTH = 19


def doctor(debug: Debug = False) -> int:
    """Probe what a lab needs of this machine.

    Each failure comes with its fix.

    \b
    Example:
      sudo emu doctor

    Exit status: 0 if labs can run here, else 1.
    """
    from emu.doctor import examine  # noqa: PLC0415

    return show_checks(results(), examine())


def show_checks(console: Console, checks: Sequence[Check]) -> Exit:
    """Print every check and what they come to. The status is ERROR if a required one failed."""
    for check in checks:
        word, style = _word(check)
        line = Text.assemble((f"{word:<5}", style), f"{check.name:<{_NAME_WIDTH}}", check.detail)
        console.print(line, soft_wrap=not console.is_terminal)
        if check.fix:
            show_line(console, f"fix: {check.fix}", indent=5)
    lacking = [check.name for check in checks if check.required and not check.ok]
    if lacking:
        console.print(Text(f"No lab can run here yet: {', '.join(lacking)}", style="red"), soft_wrap=True)
        return Exit.ERROR
    console.print(Text("Labs can run here.", style="green"))
    return Exit.VALID


def _word(check: Check) -> tuple[str, str]:
    if check.ok:
        return "ok", "green"
    return ("FAIL", "red") if check.required else ("warn", "yellow")
