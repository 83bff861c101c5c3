"""`emu list`: what a scenario can name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from emu.cli.exits import Exit
from emu.cli.lines import show_columns
from emu.cli.options import Debug, Json, Plugins
from emu.cli.output import plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from emu.catalogue import Item


class Part(StrEnum):
    """What can be listed."""

    FABRICS = "fabrics"
    POLICIES = "policies"
    WORKLOADS = "workloads"
    MODELS = "models"
    COLLECTIVES = "collectives"


What = Annotated[Part | None, typer.Argument(metavar="WHAT", help=f"One of {', '.join(Part)}; default: all of them.")]


def list_(what: What = None, json: Json = False, plugin: Plugins = None, debug: Debug = False) -> int:
    """List fabrics, policies, workloads, models and collectives.

    One line for each that a scenario can name, those of plug-ins included.

    \b
    Example:
      emu list fabrics --plugin my_fabrics.py

    Exit status: 0, or 2 if a plugin cannot be loaded.
    """
    from emu.catalogue import Item, catalogue  # noqa: PLC0415
    from emu.scenario import load_plugins  # noqa: PLC0415

    with plugins_kept_apart():
        load_plugins(plugin or ())
        parts = {part.value: catalogue(part.value) for part in Part if what in (None, part)}
    if json:
        write_json(parts, dict[str, list[Item]])
    else:
        _show(results(), parts)
    return Exit.VALID


def _show(console: Console, parts: dict[str, list[Item]]) -> None:
    for part, items in parts.items():
        if len(parts) > 1:
            console.print(Text(part, style="bold"))
        show_columns(console, [(Text(item.name), Text(item.text)) for item in items])
