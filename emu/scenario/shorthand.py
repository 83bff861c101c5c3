"""How a step may write its sizes and its ranks, and what they become."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter, WithJsonSchema, model_validator

from emu.scenario.fields import Label, PositiveSize, Refusal, Size, Strict, Whole, as_list, fault, nearest, refuse_at
from emu.units import UnitError, parse_size, write_size

MAX_RANK = 65_535

NamedSize = Literal["weights", "gradients", "layer-gradients"]
Sizes = Annotated[tuple[PositiveSize, ...], Field(min_length=1, max_length=10_000)]
_SIZES: TypeAdapter[tuple[int, ...]] = TypeAdapter(Sizes)


def _read_size(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """A quantity, a list of them, or the name of one that the model gives; always a tuple, unless a name."""
    if value in get_args(NamedSize):
        return value
    if isinstance(value, list | tuple):
        return _SIZES.validate_python(value)
    try:
        return _SIZES.validate_python([value])
    except ValueError:
        raise _size_refusal(value) from None


def _size_refusal(value: object) -> Refusal:
    names = get_args(NamedSize)
    try:
        parse_size(value)
    except UnitError as error:
        if isinstance(value, str) and not re.match(r"\s*[-0-9.]", value):
            return Refusal(f"{value[:40]!r} is neither a size such as 16MiB nor a name of one", nearest(value, names))
        return Refusal(str(error))
    return Refusal("must be more than 0 bytes")


def _write_sizes(value: str | tuple[int, ...]) -> str | list[str]:
    return value if isinstance(value, str) else [write_size(size) for size in value]


_ONE_SIZE = TypeAdapter(Size).json_schema()
StepSize = Annotated[
    tuple[int, ...] | NamedSize,
    BeforeValidator(_read_size),
    PlainSerializer(_write_sizes, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(NamedSize))},
                _ONE_SIZE,
                {"type": "array", "items": _ONE_SIZE, "minItems": 1},
            ]
        }
    ),
]


def _read_ranks(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """`all`, a list of ranks, or text such as "0-7,12"."""
    if value == "all":
        return value
    ranks = _rank_list(value, 'write all, [0, 1, 2] or "0-7,12"')
    if len(ranks) < 2:
        raise Refusal("a group needs at least 2 ranks")
    return ranks


def _read_rank_list(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """The same without `all`; one rank is enough, and may stand alone."""
    ranks = _rank_list([value] if type(value) is int else value, 'write [0, 1, 2] or "0-7,12"')
    if not ranks:
        raise Refusal("names no rank")
    return ranks


def _rank_list(value: Any, hint: str) -> tuple[int, ...]:  # noqa: ANN401 - a validator's input
    ranks = _expand(value) if isinstance(value, str) else value
    if not isinstance(ranks, list | tuple) or not all(type(rank) is int for rank in ranks):
        raise Refusal(f"{value!r:.60} is not a group of ranks", hint)
    if not all(0 <= rank <= MAX_RANK for rank in ranks):
        raise Refusal(f"ranks are numbers from 0 to {MAX_RANK}")
    if len(ranks) > len(set(ranks)):
        raise Refusal(f"rank {Counter(ranks).most_common(1)[0][0]} is in the group twice")
    return tuple(ranks)


def _expand(text: str) -> list[int] | None:
    """The ranks that "0-7,12" stands for, or None if it is no such text."""
    ranks: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?", part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > MAX_RANK:
            raise Refusal(f"{part.strip()!r} is not a range of ranks", f"ranks go from 0 to {MAX_RANK}")
        ranks.extend(range(first, last + 1))
        if len(ranks) > MAX_RANK + 1:
            raise Refusal(f"names more than {MAX_RANK + 1} ranks")
    return ranks


_RANK_LIST = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MAX_RANK}, "minItems": 2}
_RANK_TEXT = {"type": "string", "pattern": r"^\s*(all|\d+\s*(-\s*\d+\s*)?(,\s*\d+\s*(-\s*\d+\s*)?)*)$"}
_ONE_RANK = {"type": "integer", "minimum": 0, "maximum": MAX_RANK}
_ONLY_RANKS = {"type": "string", "pattern": r"^\s*\d+\s*(-\s*\d+\s*)?(,\s*\d+\s*(-\s*\d+\s*)?)*$"}
Ranks = Annotated[
    tuple[int, ...] | Literal["all"],
    BeforeValidator(_read_ranks),
    WithJsonSchema({"anyOf": [_RANK_TEXT, {**_RANK_LIST, "uniqueItems": True}]}),
]
RankList = Annotated[
    tuple[int, ...],
    BeforeValidator(_read_rank_list),
    WithJsonSchema({"anyOf": [_ONE_RANK, _ONLY_RANKS, {**_RANK_LIST, "minItems": 1, "uniqueItems": True}]}),
]
_NAMES = {"type": "array", "items": {"type": "string"}}
Names = Annotated[tuple[Label, ...], BeforeValidator(as_list), WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES]})]


class Sweep(Strict):
    """Sizes as nccl-tests steps through them: `from`, then times `factor`, up to `to`.

    from: the smallest.
    to: the largest that may be reached.
    factor: from each to the next.
    """

    first: PositiveSize = Field(alias="from")
    last: PositiveSize = Field(alias="to")
    factor: Annotated[Whole, Field(ge=2, le=1_000_000)] = 2

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.last < self.first:
            refuse_at({("to",): fault("must not be smaller than from")})
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes, smallest first, in bytes."""
        sizes = [self.first]
        while sizes[-1] * self.factor <= self.last:
            sizes.append(sizes[-1] * self.factor)
        return tuple(sizes)
