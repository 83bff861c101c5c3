"""Parts about what a scenario can name: fabrics, policies, workloads, models, collectives."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from controllers.policies import BUILT_IN
from emu.catalogue import Item, catalogue
from emu.cli.pages import markdown
from emu.cli.pages.commands import commands, first_line
from emu.cli.pages.keys import form, key_table
from emu.scenario.fabric_spec import FabricSpec
from topologies import registry
from topologies.fabric import Fabric, Kind
from workloads.registry import WORKLOADS

_KINDS: Final = ((Kind.TOR, "ToRs"), (Kind.EPS, "other packet switches"), (Kind.OCS, "circuit switches"))
_POLICY_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "scheduled": ("Change", "Rotation"),
    "one-shot": ("OneShotPolicy",),
    "templates": ("TemplatesPolicy",),
}
_WORKLOAD_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "collectives": ("Collectives", "CollectiveStep", "ComputeStep", "Sweep"),
    "rl-iteration": ("RlWorkload", "DecodeSpec", "TailSpec", "AfdSpec", "WeightSyncSpec"),
    "flow-list": ("FlowList",),
}
_TITLES: Final[Mapping[str, str]] = {
    "Change": "An entry of `schedule`",
    "Rotation": "`schedule` as a rotation",
    "OneShotPolicy": "Keys",
    "TemplatesPolicy": "Keys",
    "Collectives": "Keys",
    "CollectiveStep": "A step with a collective",
    "ComputeStep": "A step that computes",
    "Sweep": "`sweep`",
    "RlWorkload": "Keys",
    "DecodeSpec": "`decode`",
    "TailSpec": "`tail`",
    "AfdSpec": "`afd`",
    "WeightSyncSpec": "`weight_sync`",
    "FlowList": "Keys",
}


# -- names, and a line on each: only what emu has itself, whatever plug-ins are loaded ---------------------------------


def fabrics() -> list[Item]:
    """The built-in fabrics."""
    return [item for item in catalogue("fabrics") if registry.find(item.name).__module__.startswith("topologies.")]


def policies() -> list[Item]:
    """The built-in policies."""
    return [item for item in catalogue("policies") if item.name in BUILT_IN]


def workloads() -> list[Item]:
    """The built-in workloads."""
    return [item for item in catalogue("workloads") if item.name in WORKLOADS]


def folders() -> Mapping[str, list[tuple[str, str]]]:
    """For each folder of pages, what has a page there and the line on it."""
    items: Mapping[str, Callable[[], list[Item]]] = {"fabrics": fabrics, "policies": policies, "workloads": workloads}
    found = {folder: [(item.name, item.text) for item in named()] for folder, named in items.items()}
    return {"commands": [(name, first_line(name)) for name in commands()], **found}


def index(folder: str, prefix: str = "") -> str:
    """A table of a folder's pages. prefix: what leads from the page to them."""
    rows = [(f"[{name}]({prefix}{name}.md)", text) for name, text in folders()[folder]]
    return markdown.table((folder.removesuffix("s").replace("policie", "policy"), "what it is"), rows)


# -- one page each -----------------------------------------------------------------------------------------------------


def fabric(name: str) -> str:
    """A builder's text, its parameters, and how large it is with its defaults."""
    builder = registry.find(name)
    built = registry.build(name)
    common = FabricSpec.known_keys()
    parts = ["\n\n".join(_paragraphs(builder)) + "\n", "## Parameters\n", _parameters_head()]
    parts += [key_table(form(f"fabric-{name}"), leave_out=common), "## With its defaults\n", _counts(built)]
    if built.notes:
        parts += ["Results note of it: " + "; ".join(built.notes) + ".\n"]
    if background := _background(builder):
        parts += ["## Background\n", f"{background}\n"]
    return "\n".join(parts)


def policy(name: str) -> str:
    """A policy's line and its keys."""
    text = next(item.text for item in policies() if item.name == name)
    return "\n".join([f"{text}\n", *_sections(_POLICY_FORMS.get(name, ()))])


def workload(name: str) -> str:
    """A workload's line and its keys."""
    return "\n".join([f"{_sentence(WORKLOADS[name])}\n", *_sections(_WORKLOAD_FORMS[name])])


def models() -> str:
    """The models whose sizes a workload can use."""
    return markdown.table(("model", "what it is"), [(f"`{one.name}`", one.text) for one in catalogue("models")])


def collectives() -> str:
    """The collectives and their algorithms."""
    rows = [
        (f"`{item.name}`", f"`{algorithm}`", text)
        for item in catalogue("collectives")
        for algorithm, text in item.details["algorithms"].items()
    ]
    return markdown.table(("collective", "algorithm", "how"), rows)


# -- helpers -----------------------------------------------------------------------------------------------------------


def _sections(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        described = str(form(name).get("description", "")).partition("\n\n")[0]
        yield f"## {_TITLES[name]}\n\n{described}\n"
        yield key_table(form(name))


def _parameters_head() -> str:
    return "Beside those of [every fabric](../scenario.md#every-fabric):\n"


def _counts(built: Fabric) -> str:
    counts = {"hosts": len(built.hosts), "NICs": len(built.all_nics), "GPUs": sum(host.gpus for host in built.hosts)}
    counts |= {words: len(built.of_kind(kind)) for kind, words in _KINDS} | {"links": len(built.links)}
    return markdown.table(counts, [map(str, counts.values())])


def _paragraphs(builder: registry.Builder) -> Iterator[str]:
    """A builder's docstring as prose: without the list of its arguments, and with errors as a reader meets them."""
    for paragraph in (inspect.getdoc(builder) or "").split("\n\n"):
        if paragraph.startswith("Args:"):
            continue
        text = re.sub(r"([Tt])he text of this module \(\S+\)", r"\1he [background](#background)", paragraph)
        yield re.sub(r"^Raises FabricError (?=if|for)", "A scenario is refused ", text)


def _background(builder: registry.Builder) -> str:
    """What the builder's module says beyond its first line."""
    text = inspect.getdoc(importlib.import_module(builder.__module__)) or ""
    return text.partition("\n\n")[2]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
