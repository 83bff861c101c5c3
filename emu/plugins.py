"""Policies and workloads of the user's own: functions that scenarios name as they name the built-in ones.

    @policy("busiest-pair")
    def busiest_pair(fabric, event, view, now, *, least: Size = 0):
        '''A circuit for the pair with the most to send.'''

    @workload("mixture")
    def mixture(cluster, seed, *, layers: int = 4):
        '''All-to-all to the experts and back, layer after layer.'''

Keyword-only parameters are the keys that a scenario may give, with their types, units and defaults. A function becomes
known when a file given with `--plugin` is imported, or from an installed distribution's entry point in the group
`emu.policies` or `emu.workloads`. Fabrics of one's own have `topologies.registry.builder`.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, TypeVar

from controllers.epochs import Matchings
from controllers.policies import BUILT_IN as POLICIES
from controllers.policies.protocol import Keep, Plan, PolicyEvent, View
from emu.errors import EmuError, InputError
from topologies import registry
from topologies.fabric import Fabric, FabricError
from workloads.cluster import Cluster
from workloads.registry import WORKLOADS
from workloads.steps import Step

Kind = Literal["policy", "workload"]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_GROUPS: Mapping[Kind, str] = {"policy": "emu.policies", "workload": "emu.workloads"}
_ARGUMENTS: Mapping[Kind, tuple[str, ...]] = {
    "policy": ("fabric", "event", "view", "now"),
    "workload": ("cluster", "seed"),
}
_BUILT_IN: Mapping[Kind, tuple[str, ...]] = {"policy": POLICIES, "workload": tuple(WORKLOADS)}
_known: dict[Kind, dict[str, Callable[..., Any]]] = {"policy": {}, "workload": {}}


# -- making functions known --------------------------------------------------------------------------------------------


def policy(name: str) -> Callable[[_Function], _Function]:
    """Register the decorated function as the policy of that name.

    It is asked as `CircuitPolicy.on` is, with the wired fabric before the rest, and answers with a Plan or Keep. It
    must be pure: the same question has the same answer. Raises InputError for a function of another form.
    """
    return lambda function: _register("policy", name, function)


def workload(name: str) -> Callable[[_Function], _Function]:
    """Register the decorated function as the workload of that name.

    It gets the cluster and the run's seed and returns (or yields) the steps of `workloads.steps`. Raises InputError for
    a function of another form.
    """
    return lambda function: _register("workload", name, function)


def names(kind: Kind) -> tuple[str, ...]:
    """All known names, sorted; imports no installed plugin."""
    return tuple(sorted({*_known[kind], *(entry.name for entry in entry_points(group=_GROUPS[kind]))}))


def find(kind: Kind, name: str) -> Callable[..., Any]:
    """The function of that name. Raises InputError if there is none or its package cannot be imported."""
    if name not in _known[kind]:
        for entry in entry_points(group=_GROUPS[kind], name=name):
            try:
                _register(kind, name, entry.load())
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"{kind} {name} ({entry.value}): {type(error).__name__}: {error}") from error
    if name not in _known[kind]:
        raise InputError(f"there is no {kind} {name!r}")
    return _known[kind][name]


def options(function: Callable[..., Any]) -> tuple[registry.Parameter, ...]:
    """What a scenario may say to it. Raises InputError for annotations that name nothing."""
    try:
        return registry.parameters(function)
    except FabricError as error:
        raise InputError(str(error).removeprefix("builder ")) from error


@contextmanager
def loading(path: Path) -> Iterator[None]:
    """While a user's file is imported: what it registered before goes first, and nothing stays if the import fails."""
    before = {kind: dict(functions) for kind, functions in _known.items()}
    for functions in _known.values():
        for name in [name for name, function in functions.items() if _file(function) == path.resolve()]:
            del functions[name]
    try:
        yield
    except BaseException:
        _known.update(before)
        raise


# -- using them --------------------------------------------------------------------------------------------------------


class PluginError(EmuError):
    """A function of the user's own failed, or answered with something that makes no sense."""


@dataclass(frozen=True)
class OwnPolicy:
    """A registered function as a CircuitPolicy. `values`: what the scenario says to it."""

    name: str
    fabric: Fabric
    values: Mapping[str, object]

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The function's answer. Raises PluginError if it fails."""
        return checked(self.name, _call("policy", self.name, (self.fabric, event, view, now), self.values))

    def known(self) -> tuple[Matchings, ...]:
        """Nothing: what it will choose is only known once it is asked."""
        return ()


def checked(name: str, answer: object) -> Plan | Keep:
    """What a policy answered. Raises PluginError if it makes no sense."""
    if not isinstance(answer, Plan | Keep):
        raise PluginError(f"policy {name}: it answered {answer!r:.60}, which is neither a Plan nor Keep")
    return answer


def steps(name: str, cluster: Cluster, seed: int, values: Mapping[str, object]) -> tuple[Step, ...]:
    """The steps of a workload of one's own. Raises PluginError if its function fails or gives anything else."""
    made = _call("workload", name, (cluster, seed), values)
    try:
        found = tuple(made)
    except Exception as error:  # a generator fails here
        raise PluginError(f"workload {name}: {_told(error)}") from error
    if wrong := [step for step in found if not isinstance(step, Step)]:
        raise PluginError(f"workload {name}: it gave {wrong[0]!r:.60}, which is no step")
    return found


def _call(kind: Kind, name: str, arguments: tuple[object, ...], values: Mapping[str, object]) -> Any:  # noqa: ANN401
    try:
        return find(kind, name)(*arguments, **values)
    except EmuError:
        raise
    except Exception as error:
        raise PluginError(f"{kind} {name}: {_told(error)}") from error


def _told(error: Exception) -> str:
    """An error of the user's own code, with the line that it comes from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}: {type(error).__name__}: {error}"


# -- helpers -----------------------------------------------------------------------------------------------------------


def _register(kind: Kind, name: str, function: _Function) -> _Function:
    where = f"{kind} {name}"
    if not callable(function):
        raise InputError(f"{where}: {function!r:.60} is no function")
    where += f" ({function.__qualname__} in {_file(function)})"
    if name in _BUILT_IN[kind]:
        raise InputError(f"{where}: emu has a {kind} of that name itself; choose another")
    if (other := _known[kind].get(name, function)) is not function:
        raise InputError(f"{where}: {other.__qualname__} in {_file(other)} has that name already")
    if not inspect.getdoc(function):
        raise InputError(f"{where}: it needs a docstring; its first line is what users read in the list")
    _check_arguments(where, kind, function)
    _known[kind][name] = function
    return function


def _check_arguments(where: str, kind: Kind, function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    given = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(given) != len(_ARGUMENTS[kind]):
        raise InputError(f"{where}: it must take {', '.join(_ARGUMENTS[kind])}, and options after a *")
    for one in parameters:
        if one.kind is inspect.Parameter.KEYWORD_ONLY and inspect.Parameter.empty in (one.annotation, one.default):
            raise InputError(f"{where}: option {one.name} needs a type annotation and a default")


def _file(function: Callable[..., Any]) -> Path:
    return Path(inspect.getsourcefile(function) or "?").resolve()
