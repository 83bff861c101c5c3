"""Which fabrics can be built by name: the built-in builders, installed packages' and the user's own.

A builder is a plain function that returns a finished `Fabric`. All its parameters are keyword-only, annotated and have
defaults, so that its signature is the whole schema of what a scenario may say about the fabric:

    @builder("pair")
    def pair(*, rate: Rate = 100_000_000_000) -> Fabric:
        '''Two hosts on one ToR.'''

It becomes known by one of three ways: it is built in; an installed distribution names the function in the entry point
group `emu.topologies`; or `load_plugin` imports the user's file that holds it.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from topologies.fabric import Fabric, FabricError
from topologies.parameters import Unit

GROUP = "emu.topologies"
_BUILT_IN = tuple(
    f"topologies.{module}" for module in ("fat_tree", "hybrid", "leaf_spine", "rail", "rfabric", "topoopt")
)

Builder = Callable[..., Fabric]
_B = TypeVar("_B", bound=Builder)
_builders: dict[str, Builder] = {}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a builder.

    type: its annotation, resolved, `Annotated` metadata kept.
    unit: the base unit of the number that it takes, if it is a quantity.
    """

    name: str
    type: object
    default: object
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list of fabrics says about one builder."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]


# -- registering ------------------------------------------------------------------------------------------------------


def builder(name: str) -> Callable[[_B], _B]:
    """Register the decorated function as the builder of `name`; the function itself is left as it is.

    Raises FabricError if it is no builder (see this module's text) or another one has the name.
    """

    def register(function: _B) -> _B:
        _register(name, function)
        return function

    return register


def load_plugin(path: Path) -> tuple[str, ...]:
    """Import a user's Python file and return the names of the builders that it registered.

    The file runs with the user's rights, so only a path given by hand may come here, never one out of a scenario.
    Loading the same file again replaces its builders. Raises FabricError with the file and the reason if the import
    fails; nothing of it stays registered then.
    """
    _load_built_in()
    before = dict(_builders)
    _forget(path)
    known = dict(_builders)
    try:
        _import_file(path)
    except (Exception, SystemExit) as error:
        _builders.clear()
        _builders.update(before)
        raise FabricError(f"plugin {path}: {_reason(error)}") from error
    return tuple(name for name in _builders if name not in known)


# -- finding ----------------------------------------------------------------------------------------------------------


def names() -> tuple[str, ...]:
    """The names of all known builders, sorted. Imports no installed plugin."""
    _load_built_in()
    return tuple(sorted({*_builders, *_installed()}))


def find(name: str) -> Builder:
    """The builder of that name.

    Raises FabricError for an unknown name (the nearest and all valid ones are in the message), and for an installed
    builder that cannot be imported.
    """
    _load_built_in()
    if name not in _builders and (entry := _installed().get(name)) is not None:
        _load_entry(entry)
    if name not in _builders:
        raise FabricError(_unknown("fabric", name, names()))
    return _builders[name]


def build(name: str, **values: object) -> Fabric:
    """Call the builder of that name and return its fabric, with `parameters` filled in if the builder left them empty.

    Raises FabricError for unknown names and parameters, and for whatever goes wrong inside the builder.
    """
    function = find(name)
    known = {parameter.name: parameter.default for parameter in parameters(function)}
    for key in values:
        if key not in known:
            raise FabricError(f"fabric {name}: {_unknown('parameter', key, tuple(known))}")
    try:
        fabric = function(**values)
    except FabricError as error:
        raise FabricError(f"fabric {name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise FabricError(f"fabric {name}: its builder failed: {_reason(error)}") from error
    if not isinstance(fabric, Fabric):
        raise FabricError(f"fabric {name}: its builder returned {type(fabric).__name__}, not a Fabric")
    fabric.parameters = fabric.parameters or {**known, **values}
    return fabric


def parameters(function: Builder) -> tuple[Parameter, ...]:
    """The keyword-only parameters of a builder (it has no others), in the order of its signature.

    Raises FabricError for an annotation that names nothing.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise FabricError(f"builder {function.__name__}: its annotations: {_reason(error)}") from error
    signature = inspect.signature(function).parameters
    return tuple(
        Parameter(name, hints[name], parameter.default, _unit(hints[name]))
        for name, parameter in signature.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    )


def summary(name: str) -> Summary:
    """Name, first line of the docstring and parameters of one builder. Raises FabricError as `find` does."""
    function = find(name)
    return Summary(name, _text(function).splitlines()[0], parameters(function))


# -- helpers ----------------------------------------------------------------------------------------------------------


def _register(name: str, function: Builder) -> None:
    if name in _builders and _builders[name] is not function:
        raise FabricError(f"fabric {name}: {_origin(function)} and {_origin(_builders[name])} both build it")
    _check_signature(name, function)
    _builders[name] = function


def _check_signature(name: str, function: Builder) -> None:
    where = f"fabric {name} ({_origin(function)})"
    if not _text(function):
        raise FabricError(f"{where}: a builder needs a docstring; its first line is what users read in the list")
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise FabricError(f"{where}: parameter {key} must be keyword-only (put * before it)")
        if parameter.annotation is inspect.Parameter.empty:
            raise FabricError(f"{where}: parameter {key} needs a type annotation")
        if parameter.default is inspect.Parameter.empty:
            raise FabricError(f"{where}: parameter {key} needs a default")


def _text(function: Builder) -> str:
    return (inspect.getdoc(function) or "").strip()


def _load_built_in() -> None:
    """Import the built-in builders; late, because their modules import this one."""
    for module in _BUILT_IN:
        importlib.import_module(module)


def _installed() -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _load_entry(entry: EntryPoint) -> None:
    package = entry.dist.name if entry.dist is not None else "an installed package"
    try:
        function = entry.load()
    except Exception as error:
        raise FabricError(f"fabric {entry.name} ({entry.value} of {package}): {_reason(error)}") from error
    if not inspect.isfunction(function):
        raise FabricError(f"fabric {entry.name} ({entry.value} of {package}): this is not a function")
    _register(entry.name, function)


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise FabricError("this is not a file" if path.exists() else "there is no such file")
    # The hash keeps two plugins of one file name apart.
    name = f"emu_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FabricError("this is not a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations and dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _forget(path: Path) -> None:
    file = str(path.resolve())
    for name in [name for name, function in _builders.items() if _file(function) == file]:
        del _builders[name]


def _file(function: Builder) -> str:
    return str(Path(inspect.getsourcefile(function) or "?").resolve())


def _origin(function: Builder) -> str:
    return f"{function.__qualname__} in {_file(function)}"


def _unit(hint: object) -> Unit | None:
    """The unit inside an annotation, also that of `Rate | None`."""
    found = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Unit)]
    found += [unit for part in typing.get_args(hint) if (unit := _unit(part)) is not None]
    return found[0] if found else None


def _unknown(what: str, name: str, valid: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, valid, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no {what} {name!r}{hint}; valid: {', '.join(valid)}"


def _reason(error: BaseException) -> str:
    text = str(error) or "no message"
    return text if isinstance(error, FabricError) else f"{type(error).__name__}: {text}"
