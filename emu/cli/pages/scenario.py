"""The reference of a scenario's keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.cli.pages.keys import form, key_table, schema

_SECTIONS: Final = (
    ("`emulation`", "Emulation"),
    ("`emulation.scale`", "Scale"),
    ("`transport`", "Transport"),
    ("`capture`", "Capture"),
    ("Every fabric", "FabricSpec"),
    ("An entry of `schedule`", "Change"),
    ("`schedule` as a rotation", "Rotation"),
    ("`dark` as a mapping", "DarkSpec"),
)


def scenario() -> str:
    """All keys that are not those of one fabric, policy or workload."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield "## The scenario\n"
    yield key_table(schema())
    for title, name in _SECTIONS:
        described = str(form(name).get("description", "")).partition("\n\n")[0]
        yield f"## {title}\n\n{described}\n"
        yield key_table(form(name))
