"""The points of a sweep: one complete scenario for each combination of values and each seed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from emu.errors import InputError, dotted
from emu.scenario.fields import nearest
from emu.scenario.load import validate
from emu.scenario.schema import Scenario
from emu.scenario.source import Source

Engine = Literal["model", "packet"]
Place = tuple[Any, str | int]
"""A list or mapping, and the index or key in it."""

_TOKEN = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep. values: by parameter, as the scenario writes it. scenario: complete, without a sweep."""

    values: Mapping[str, Any]
    seed: int
    scenario: Scenario

    @property
    def title(self) -> str:
        """What makes it another point than its neighbours."""
        return ", ".join([*(f"{short_name(key)}={value}" for key, value in self.values.items()), f"seed {self.seed}"])


def short_name(key: str) -> str:
    """The last word of a dotted key."""
    return key.rpartition(".")[2]


def points(scenario: Scenario, engine: Engine) -> list[Point]:
    """Every point of a scenario's sweep, the last parameter and then the seeds changing fastest.

    Raises InputError, at the parameter, for a key that the scenario does not have and a value that it refuses, and for
    a scenario without a sweep.
    """
    sweep = scenario.sweep
    if sweep is None:
        hint = "write e.g. sweep: {parameters: {fabrics.hybrid.reconfiguration: [1ms, 10ms]}}"
        raise scenario.error(("sweep",), "this scenario has no sweep", hint=hint)
    seeds = sweep.seeds or (scenario.seed,)
    found = []
    for combination in itertools.product(*sweep.parameters.values()):
        values = dict(zip(sweep.parameters, combination, strict=True))
        first = _scenario(scenario, values, seeds[0], engine)
        others = (first.model_copy(update={"seed": seed}) for seed in seeds[1:])
        found += [Point(values, one.seed, one) for one in (first, *others)]
    return found


def _scenario(scenario: Scenario, values: Mapping[str, Any], seed: int, engine: Engine) -> Scenario:
    """The scenario with these values in it."""
    data = json.loads(scenario.to_json())
    del data["sweep"]
    data |= {"seed": seed, "engine": engine}
    for key, value in values.items():
        for container, place in _places(scenario, data, key):
            container[place] = value
    try:
        return validate(data, Source())
    except InputError as error:
        key = _culprit(values, error)
        at = "" if key.endswith(dotted(error.key)) else f"{dotted(error.key)}: "
        raise _error(scenario, key, f"{values[key]}: {at}{error.problem}", error.hint) from error


def _culprit(values: Mapping[str, Any], error: InputError) -> str:
    """The parameter that an error is about: the one whose last word its place has, else the first."""
    return next((key for key in values if short_name(key) in map(str, error.key)), next(iter(values)))


def _places(scenario: Scenario, data: dict[str, Any], key: str) -> list[Place]:
    """Where a dotted key leads to, each place of it there already."""
    tokens = _TOKEN.findall(key)
    if not tokens or not re.fullmatch(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*", key):
        raise _error(scenario, key, "is no dotted key", "write e.g. fabrics.hybrid.reconfiguration")
    found: list[Place] = [({"": data}, "")]
    for depth, token in enumerate(tokens):
        above = dotted(tokens[:depth]).replace(".[", "[") or "the scenario"
        try:
            found = [below for container, place in found for below in _below(container[place], token, above)]
        except InputError as error:
            raise _error(scenario, key, error.problem, error.hint) from error
    return found


def _below(inside: Any, token: str, above: str) -> Iterator[Place]:  # noqa: ANN401 - JSON
    """The places that one word of a dotted key means inside a value."""
    if isinstance(inside, dict):
        wanted = list(inside) if token == "*" else [token]
        if not set(wanted) <= set(inside):
            raise InputError(f"{above} has no key {token!r}", hint=nearest(token, inside))
    elif isinstance(inside, list):
        wanted = _entries(inside, token, above)
    else:
        raise InputError(f"{above} has no keys below it", hint=f"it is {json.dumps(inside):.40}")
    return ((inside, place) for place in wanted)


def _entries(inside: list[Any], token: str, above: str) -> list[Any]:
    """The indices of a list that a word means: all, one by its number, or one by its name."""
    if token == "*":
        return list(range(len(inside)))
    if token.startswith("["):
        number = int(token[1:-1])
        if number >= len(inside):
            raise InputError(f"{above} has no entry {number}", hint=f"it has {len(inside)}, counted from 0")
        return [number]
    names = [one.get("name") if isinstance(one, dict) else one for one in inside]
    if token not in names:
        known = [str(name) for name in names if name is not None]
        raise InputError(f"{above} has no entry {token!r}", hint=nearest(token, known) or "write [0] for the first")
    return [names.index(token)]


def _error(scenario: Scenario, key: str, problem: str, hint: str) -> InputError:
    return scenario.error(("sweep", "parameters", key), problem, hint=hint)
