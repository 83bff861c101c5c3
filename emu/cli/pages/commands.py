"""Parts about commands, from what `--help` shows."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from typing import Any, Final

import typer

from emu.cli.app import app
from emu.cli.pages import markdown

_RAW: Final = "\b"
"""What the first line of a paragraph is that is shown as it stands."""
_EXIT: Final = "Exit status: "


@functools.cache
def commands() -> Mapping[str, Any]:
    """Each command of `emu` as typer has it, in the order of `emu --help`."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def first_line(name: str) -> str:
    """What `emu --help` says of a command."""
    return str(commands()[name].help).partition("\n")[0]


def command(name: str) -> str:
    """Usage, text, options, examples and exit status of a command."""
    found = commands()[name]
    texts, examples, status = [], [], ""
    for paragraph in str(found.help).split("\n\n"):
        if paragraph.startswith(_EXIT):
            status = paragraph.removeprefix(_EXIT)
        elif re.match(rf"{_RAW}\nExamples?:\n", paragraph):
            examples.append(_unindented(paragraph.partition(":\n")[2]))
        else:
            texts.append(_prose(paragraph))
    parts = [markdown.code(_usage(name)), *(f"{text}\n" for text in texts)]
    parts += [f"## Options\n\n{_options(found)}"]
    parts += [f"## Example\n\n{markdown.code(text)}" for text in examples]
    if status:
        parts += [f"## Exit status\n\n{status}\n\nAll of them are in [the table](../verdict.md#exit-status).\n"]
    return "\n".join(parts)


def _usage(name: str) -> str:
    found = commands()[name]
    words = [_word(one) for one in found.params if one.param_type_name == "argument"]
    return " ".join(["emu", name, *words, "[OPTIONS]"])


def _word(argument: Any) -> str:  # noqa: ANN401 - typer's own class
    return str(argument.metavar) if argument.required else f"[{argument.metavar}]"


def _options(found: Any) -> str:  # noqa: ANN401 - typer's own class
    rows = [row for one in found.params for row in _option(one)]
    return markdown.table(
        ("argument or option", "default", "meaning"), [*rows, ("`--help`, `-h`", "", "Show the help and exit.")]
    )


def _option(one: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - typer's own class
    if one.param_type_name == "argument":
        yield f"`{_word(one)}`", f"`{one.default}`" if one.default else "", one.help
        return
    name = ", ".join(f"`{f'{flag} {_metavar(one)}'.strip()}`" for flag in one.opts)
    default = f"`{one.default}`" if isinstance(one.default, str) else "required" if one.required else ""
    yield name, default, one.help


def _metavar(one: Any) -> str:  # noqa: ANN401 - typer's own class
    """What stands for an option's value; nothing for a flag."""
    words = one.type_descriptor.annotation
    if one.is_flag or one.metavar:
        return one.metavar or ""
    return "|".join(words) if isinstance(words, EnumMeta) else str(one.name).upper()


def _prose(paragraph: str) -> str:
    """A paragraph as Markdown: option names as code; raw ones as a block."""
    if paragraph.startswith(_RAW):
        return markdown.code(paragraph.removeprefix(f"{_RAW}\n")).rstrip("\n")
    return re.sub(r"(?<![`\w-])--[a-z]+(?![\w`-])", r"`\g<0>`", paragraph)


def _unindented(block: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in block.splitlines())
