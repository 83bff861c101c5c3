"""`emu schema`: what a scenario may hold, for editors."""

from __future__ import annotations

from emu.cli.exits import Exit
from emu.cli.options import Debug, Plugins
from emu.cli.output import plugins_kept_apart, write_json


def schema(plugin: Plugins = None, debug: Debug = False) -> int:
    """Print the JSON Schema of scenarios, for editors.

    An editor then completes keys, explains them and marks mistakes. With the YAML extension of VS Code, and others that
    use yaml-language-server, write into a scenario's first line:

    \b
    # yaml-language-server: $schema=emu.schema.json

    \b
    Example:
      emu schema > emu.schema.json

    Exit status: 0, or 2 if a plugin cannot be loaded.
    """
    from emu.scenario import load_plugins  # noqa: PLC0415
    from emu.scenario.editor_schema import editor_schema  # noqa: PLC0415

    with plugins_kept_apart():
        load_plugins(plugin or ())
        found = editor_schema()
    write_json(found)
    return Exit.VALID
