"""`sweep:` - parameters of a scenario that take several values, and the seeds that each combination is run with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from emu import units
from emu.errors import InputError
from emu.scenario.fields import Refusal, Strict, Whole, fault, refuse_at

MOST_VALUES = 1000
"""Of one parameter."""
MOST_POINTS = 10_000
"""Of a whole sweep."""
_FORBIDDEN = {
    "sweep": "a sweep cannot change itself",
    "seed": "name seeds in sweep: {seeds: [1, 2, 3]}",
    "engine": "choose it on the command line: emu sweep SCENARIO --engine model",
    "name": "the name is that of the whole sweep",
}


def _write_duration(seconds: float) -> str:
    """As people write it, `100us` and not `0.1ms`, if that is exact."""
    short = units.format_duration(seconds).replace(" ", "")
    return short if units.parse_duration(short) == seconds else units.write_duration(seconds)


_READERS: tuple[tuple[Callable[[object], float], Callable[[Any], str]], ...] = (
    (units.parse_duration, _write_duration),
    (units.parse_rate, units.write_rate),
    (units.parse_size, units.write_size),
)


def _read_values(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """A list as it is, a range as the list that it stands for."""
    if isinstance(value, dict):
        return _range(value)
    if not isinstance(value, list | tuple) or not value:
        hint = "write [10us, 1ms, 100ms] or {from: 10us, to: 1s, factor: 10}"
        raise Refusal(f"{value!r:.60} is no list of values", hint)
    if any(value.index(one) != place for place, one in enumerate(value)):
        raise Refusal("names a value twice", "each value is one point of the sweep")
    return tuple(value)


def _range(given: dict[str, Any]) -> tuple[Any, ...]:
    """The values from `from` to `to`: times `factor`, or plus `step`."""
    unknown = sorted(set(given) - {"from", "to", "factor", "step"})
    if unknown or not {"from", "to"} <= set(given) or len({"factor", "step"} & set(given)) != 1:
        what = f"has no key {unknown[0]!r}" if unknown else "needs from, to, and one of factor and step"
        raise Refusal(f"a range {what}", "write {from: 10us, to: 1s, factor: 10} or {from: 1, to: 8, step: 1}")
    first, write = _number(given["from"])
    last, _ = _number(given["to"], write)
    if "factor" in given:
        by, _ = _number(given["factor"])
        if by <= 1 or first <= 0:
            raise Refusal("factor must be above 1, and from above 0")
        return _values(first, last, write, lambda value: value * by)
    step, _ = _number(given["step"], write)
    if step <= 0:
        raise Refusal("step must be above 0")
    return _values(first, last, write, lambda value: value + step)


def _values(
    first: Fraction, last: Fraction, write: Callable[[Any], Any], following: Callable[[Fraction], Fraction]
) -> tuple[Any, ...]:
    if last < first:
        raise Refusal("to must not be smaller than from")
    found: list[Any] = []
    while first <= last and len(found) <= MOST_VALUES:
        found.append(write(first))
        first = following(first)
    if len(found) > MOST_VALUES:
        raise Refusal(f"has more than {MOST_VALUES} values")
    return tuple(found)


def _number(value: object, like: Callable[[Any], Any] | None = None) -> tuple[Fraction, Callable[[Any], Any]]:
    """A number or quantity exactly, and how its kind is written. like: the kind that it must be of."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if like not in (None, _plain):
            raise Refusal(f"{value} needs a unit, as from has")
        return Fraction(repr(value)), _plain
    for parse, write in _READERS:
        written = _QUANTITIES[write]
        if like in (None, written):
            try:
                return Fraction(repr(parse(value))), written
            except units.UnitError:
                continue
    hint = "write a number, or one with a unit as in 10us, 400Gbps, 16MiB"
    raise Refusal(f"{value!r:.60} is no number" + (" of the kind that from is" if like else ""), hint)


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _writer(write: Callable[[Any], str]) -> Callable[[Fraction], str]:
    whole = write is not _write_duration

    def written(value: Fraction) -> str:
        if whole and value.denominator != 1:
            raise Refusal(f"comes to {float(value):g}, which is not whole", "choose another factor or step")
        return write(int(value) if whole else float(value))

    return written


_QUANTITIES: dict[Callable[[Any], str], Callable[[Fraction], str]] = {write: _writer(write) for _, write in _READERS}


def _read_seeds(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """A list of seeds, or a range of them."""
    values = _read_values(value)
    if not all(type(seed) is int for seed in values):
        raise Refusal("seeds are whole numbers")
    return values


_RANGE = {
    "type": "object",
    "properties": {name: {"type": ["number", "string"]} for name in ("from", "to", "factor", "step")},
    "required": ["from", "to"],
    "oneOf": [{"required": ["factor"]}, {"required": ["step"]}],
    "additionalProperties": False,
}
_LIST = {"type": "array", "minItems": 1, "uniqueItems": True}
Values = Annotated[
    tuple[Any, ...],
    BeforeValidator(_read_values),
    Field(max_length=MOST_VALUES),
    WithJsonSchema({"anyOf": [_LIST, _RANGE]}),
]
"""Of one parameter, in the order in which they are run."""
Seeds = Annotated[
    tuple[Annotated[Whole, Field(ge=0, le=2**63 - 1)], ...],
    BeforeValidator(_read_seeds),
    Field(max_length=MOST_VALUES),
    WithJsonSchema({"anyOf": [{**_LIST, "items": {"type": "integer"}}, _RANGE]}),
]


class SweepSpec(Strict):
    """The same scenario many times: every combination of the parameters' values, with every seed.

    parameters: by dotted key, as in `fabrics.hybrid.reconfiguration` or `workload.steps[0].size`: a list of values, or
        a range as in {from: 10us, to: 1s, factor: 10}. A name stands for the entry that has it, `*` for all entries.
    seeds: default: the scenario's own.
    """

    parameters: Annotated[dict[str, Values], Field(min_length=1, max_length=10)]
    seeds: Seeds | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in self.parameters:
            first = key.partition(".")[0].partition("[")[0]
            if first in _FORBIDDEN:
                refuse_at({("parameters", key): fault(f"{first} cannot be swept", _FORBIDDEN[first])})
        if self.size > MOST_POINTS:
            refuse_at({("parameters",): fault(f"give {self.size} points; {MOST_POINTS} is the most")})
        return self

    @property
    def size(self) -> int:
        """How many points there are."""
        points = len(self.seeds) if self.seeds else 1
        for values in self.parameters.values():
            points *= len(values)
        return points


def check_single(sweep: SweepSpec | None, error: Callable[..., InputError]) -> None:
    """Refuse a sweep where one run is asked for. error: makes the error, as `Scenario.error` does.

    Raises InputError that names the command to use.
    """
    if sweep is not None:
        raise error(("sweep",), f"this scenario is a sweep of {sweep.size} points", hint="run it by emu sweep")
