"""What every part of the scenario schema is made of: strict base model, quantities, and errors with a hint.

Quantities are plain numbers in Python (bit/s, bytes, seconds) and text with a unit in YAML and JSON, so that a
scenario read back from its own JSON is the same to the last bit.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from emu import units
from emu.errors import KeyPath


class Refusal(ValueError):
    """A value that no type describes as wrong, with what to write instead."""

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(problem)


def fault(problem: str, hint: str = "") -> PydanticCustomError:
    """A validation error whose message is `problem` as it is (braces and all)."""
    return PydanticCustomError("refused", "{problem}", {"problem": problem, "hint": hint})


def refuse_at(faults: Mapping[KeyPath, PydanticCustomError]) -> NoReturn:
    """Raise one ValidationError with a fault at each of several places below the value that is being validated."""
    raise ValidationError.from_exception_data(
        "scenario", [InitErrorDetails(type=error, loc=key, input=None) for key, error in faults.items()]
    )


def nearest(word: object, valid: Iterable[str]) -> str:
    """A hint that names the valid word nearest to `word`, or all of them if none is near."""
    known = list(valid)
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(str(word)[:100].casefold().replace("_", "-"), folded, n=1)
    near = near or difflib.get_close_matches(str(word)[:100].casefold(), folded, n=1)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return f"valid: {', '.join(known)}" if known else ""


class Strict(BaseModel):
    """A mapping of the scenario: immutable, and every key that it does not know is refused with the nearest one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def known_keys(cls) -> tuple[str, ...]:
        """The keys as a scenario writes them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the YAML holds
        """Done before the values: a misspelt key explains what else is missing."""
        if isinstance(data, dict) and (unknown := [key for key in data if key not in cls.known_keys()]):
            refuse_at({(str(key),): fault("there is no such key", nearest(key, cls.known_keys())) for key in unknown})
        return data


# -- numbers and words ------------------------------------------------------------------------------------------------

Whole = Annotated[int, Field(strict=True)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=48)]
"""What may become part of a path: lower-case letters, digits and dashes."""
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=48)]
"""A step, phase or model: also capitals, dots and underscores."""


# -- quantities -------------------------------------------------------------------------------------------------------


def _schema(unit: str, *examples: str) -> WithJsonSchema:
    pattern = rf"^\s*([0-9]{{1,30}}(\.[0-9]{{1,30}})?\s*({unit})|0+(\.0+)?)\s*$"
    text = {"type": "string", "pattern": pattern, "examples": list(examples)}
    return WithJsonSchema({"anyOf": [text, {"const": 0}]})


Rate = Annotated[
    int,
    BeforeValidator(units.parse_rate),
    PlainSerializer(units.write_rate, return_type=str, when_used="json"),
    _schema("([kKMGTP]|[kKMGTP]i)?(b/s|bps|bits?/s|B/s|Bps|bytes?/s)", "400Gbps", "50GB/s"),
]
"""bit/s."""

Size = Annotated[
    int,
    BeforeValidator(units.parse_size),
    PlainSerializer(units.write_size, return_type=str, when_used="json"),
    _schema("([kKMGTP]|[kKMGTP]i)?(B|bytes?)", "16MiB", "2MB"),
]
"""Bytes."""

Duration = Annotated[
    float,
    BeforeValidator(units.parse_duration),
    PlainSerializer(units.write_duration, return_type=str, when_used="json"),
    _schema("ns|[u\u00b5\u03bc]s|ms|s|min|h", "10ms", "1.5s"),
]
"""Seconds."""

PositiveRate = Annotated[Rate, Field(gt=0)]
PositiveSize = Annotated[Size, Field(gt=0)]
PositiveDuration = Annotated[Duration, Field(gt=0)]


def as_list(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """A single word where a list of words is wanted."""
    return [value] if isinstance(value, str) else value


def repeated(words: Sequence[str]) -> list[tuple[int, str]]:
    """Position and word of every word that occurred before."""
    return [(place, word) for place, word in enumerate(words) if word in words[:place]]
