"""From a file to a Scenario, or to one InputError that says where and what."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from emu import plugins as own
from emu.errors import InputError, KeyPath
from emu.scenario.explain import explain
from emu.scenario.schema import Scenario
from emu.scenario.source import MAX_BYTES, Source, decode, parse, read_bytes
from emu.scenario.workload_spec import FlowList
from topologies import registry
from topologies.fabric import FabricError

MAX_FLOW_LIST: Final = 32 << 20


def load(
    path: str | os.PathLike[str],
    plugins: Iterable[str | os.PathLike[str]] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Scenario:
    """The scenario in a file.

    path: YAML, UTF-8, at most 256 KiB. A flow list that it names is read too.
    plugins: Python files with builders, policies and workloads, from the command line; a scenario cannot name any.
    overrides: values that stand in for those of the file, by key (`seed`) or dotted key (`emulation.scale`), in the
        form that the file would give them.

    Raises InputError, and nothing else, for whatever is wrong with any of them.
    """
    load_plugins(plugins)
    file = Path(path)
    text = decode(read_bytes(file, MAX_BYTES, "a scenario"), str(file))
    data, source = parse(text, str(file))
    data.setdefault("name", _name_of(file))
    return _complete(data, source, file.parent, overrides)


def load_text(
    text: str, plugins: Iterable[str | os.PathLike[str]] = (), overrides: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario in a YAML text, otherwise as `load` does; files that it names are sought in the current folder."""
    load_plugins(plugins)
    data, source = parse(text, "scenario text")
    return _complete(data, source, Path(), overrides)


def load_data(
    data: Mapping[str, Any], plugins: Iterable[str | os.PathLike[str]] = (), overrides: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario that a mapping describes, with what YAML would give: text, numbers, lists and mappings.

    Otherwise as `load` does; files that it names are sought in the current folder.
    """
    load_plugins(plugins)
    return _complete(_plain(data), Source(), Path(), overrides)


def _complete(data: dict[str, Any], source: Source, folder: Path, overrides: Mapping[str, Any] | None) -> Scenario:
    """Overridden, validated, and with its flow list read from `folder`."""
    source = _override(data, source, overrides or {})
    return _with_flows(validate(data, source), folder)


def _plain(value: Any) -> Any:  # noqa: ANN401 - data of any shape
    """A copy with lists for tuples and dicts for mappings, so that what a program holds is checked as a file's is."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def load_plugins(plugins: Iterable[str | os.PathLike[str]]) -> None:
    """Make the builders, policies and workloads in the user's own files known. Raises InputError."""
    for plugin in plugins:
        try:
            with own.loading(Path(plugin)):
                registry.load_plugin(Path(plugin))
        except FabricError as error:
            reason = error.__cause__ if isinstance(error.__cause__, InputError) else error
            raise InputError(str(reason).removeprefix(f"plugin {plugin}: "), file=os.fspath(plugin)) from error


def validate(data: dict[str, Any], source: Source) -> Scenario:
    """The scenario that plain data describes. Raises InputError, with the places of `source`."""
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        raise explain(error, source) from None
    scenario._source = source
    return scenario


def _name_of(file: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:48] or "scenario"


def _override(data: dict[str, Any], source: Source, overrides: Mapping[str, Any]) -> Source:
    """Put the command line's values into `data`; the source that knows which these are."""
    changed: set[KeyPath] = set()
    for dotted, value in overrides.items():
        *above, last = dotted.split(".")
        target = data
        for key in above:
            inner = target.setdefault(key, {})
            if not isinstance(inner, dict):
                break  # validation will refuse what stands there
            target = inner
        else:
            target[last] = value
            changed.add((*above, last))
    return Source(source.file, source.positions, frozenset(changed))


def _with_flows(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with the flow list that it names read into it."""
    workload = scenario.workload
    if not isinstance(workload, FlowList) or workload.file is None:
        return scenario
    if workload.flows is not None:
        raise scenario.error(("workload", "flows"), "stands beside file; a flow list has one of them")
    path = folder / workload.file
    try:
        flows = decode(read_bytes(path, MAX_FLOW_LIST, "a flow list"), str(path))
    except InputError as error:
        raise scenario.error(("workload", "file"), f"{workload.file}: {error.problem}", hint=error.hint) from None
    return scenario.model_copy(update={"workload": workload.model_copy(update={"flows": flows})})
