"""`workload:` - collectives in steps, or a list of flows."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from emu.errors import KeyPath
from emu.scenario.fields import (
    Duration,
    Label,
    PositiveDuration,
    PositiveSize,
    Refusal,
    Size,
    Strict,
    Whole,
    as_list,
    fault,
    nearest,
    refuse_at,
    repeated,
)
from emu.units import UnitError, parse_size, write_size
from workloads import models
from workloads.collectives import algorithms
from workloads.models import Dtype, ModelError
from workloads.protocol import Algorithm, CollectiveKind, Connection

MAX_RANK = 65_535
MAX_ROUNDS = 20_000
"""Of `repeat` times the sizes of a step."""

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
    ranks = _expand(value) if isinstance(value, str) else value
    if not isinstance(ranks, list | tuple) or not all(type(rank) is int for rank in ranks):
        raise Refusal(f"{value!r} is not a group of ranks", 'write all, [0, 1, 2] or "0-7,12"')
    if not all(0 <= rank <= MAX_RANK for rank in ranks):
        raise Refusal(f"ranks are numbers from 0 to {MAX_RANK}")
    if len(ranks) > len(set(ranks)):
        twice = next(rank for place, rank in enumerate(ranks) if rank in ranks[:place])
        raise Refusal(f"rank {twice} is in the group twice")
    if len(ranks) < 2:
        raise Refusal("a group needs at least 2 ranks")
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
    return ranks


_RANK_LIST = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MAX_RANK}, "minItems": 2}
_RANK_TEXT = {"type": "string", "pattern": r"^\s*(all|\d+\s*(-\s*\d+\s*)?(,\s*\d+\s*(-\s*\d+\s*)?)*)$"}
Ranks = Annotated[
    tuple[int, ...] | Literal["all"],
    BeforeValidator(_read_ranks),
    WithJsonSchema({"anyOf": [_RANK_TEXT, {**_RANK_LIST, "uniqueItems": True}]}),
]
_NAMES = {"type": "array", "items": {"type": "string"}}
Names = Annotated[tuple[Label, ...], BeforeValidator(as_list), WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES]})]


class Sweep(Strict):
    """Sizes as nccl-tests steps through them: `from`, then times `factor`, up to `to`."""

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


class _Step(Strict):
    """What every step may say.

    name: unique; what `after` and the results call it.
    phase: training, generation, weight-sync or a word of the user's own; results add up per phase.
    at: not before this modelled time.
    after: the steps that must have ended; default: the one before in the list.
    repeat: how many times, one after the other.
    """

    name: Label
    phase: Label | Literal[""] = ""
    at: Duration | None = None
    after: Names | None = None
    repeat: Annotated[Whole, Field(ge=1, le=10_000)] = 1


class ComputeStep(_Step):
    """All hosts compute for a while; nothing crosses the fabric."""

    compute: PositiveDuration


class CollectiveStep(_Step):
    """A collective of a group, once per size.

    algorithm: default: the usual one for the collective.
    size: S of the formulas; or a quantity of the workload's model.
    sweep: instead of `size`.
    ranks, order: who takes part, and in which order the algorithm links them.
    root: the rank that a broadcast starts from, or that an incast goes to; default: the first of the group.
    chunks: into how many pieces a chain or tree is cut.
    buckets: layer-gradients are merged into at most so many collectives.
    """

    collective: CollectiveKind
    algorithm: Algorithm | None = None
    size: StepSize | None = None
    sweep: Sweep | None = None
    ranks: Ranks = "all"
    order: Literal["sequence", "random"] = "sequence"
    root: Annotated[Whole, Field(ge=0, le=MAX_RANK)] | None = None
    chunks: Annotated[Whole, Field(ge=1, le=65_536)] | None = None
    buckets: Annotated[Whole, Field(ge=1, le=10_000)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults: dict[KeyPath, str] = {}
        if self.size is None and self.sweep is None:
            faults[("size",)] = "is required, unless there is a sweep"
        if self.size is not None and self.sweep is not None:
            faults[("sweep",)] = "stands beside size; a step has one of them"
        if self.repeat * self._count > MAX_ROUNDS:
            faults[("repeat",)] = f"makes {self.repeat * self._count} collectives of the step; {MAX_ROUNDS} is the most"
        if self.buckets is not None and self.size != "layer-gradients":
            faults[("buckets",)] = "only means something with size: layer-gradients"
        if self.root is not None and self.ranks != "all" and self.root not in self.ranks:
            faults[("root",)] = f"rank {self.root} is not in ranks"
        if faults:
            refuse_at({key: fault(problem) for key, problem in faults.items()})
        valid = algorithms(self.collective)
        if self.algorithm is not None and self.algorithm not in valid:
            problem = f"there is no {self.collective} by {self.algorithm}"
            refuse_at({("algorithm",): fault(problem, nearest(self.algorithm, valid))})
        return self

    @property
    def _count(self) -> int:
        sizes = self.sweep.sizes if self.sweep else self.size
        return len(sizes) if isinstance(sizes, tuple) else 1


def _step_tag(step: Any) -> str:  # noqa: ANN401 - a validator's input
    computes = "compute" in step if isinstance(step, dict) else isinstance(step, ComputeStep)
    return "<compute>" if computes else "<collective>"


Step = Annotated[
    Annotated[ComputeStep, Tag("<compute>")] | Annotated[CollectiveStep, Tag("<collective>")], Discriminator(_step_tag)
]


class Collectives(Strict):
    """Collectives and computations in steps.

    model, dtype: what the sizes weights, gradients and layer-gradients are taken from.
    """

    kind: Literal["collectives"]
    model: str | None = None
    dtype: Dtype = "bf16"
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if faults := {**self._model_faults(), **self._name_faults()}:
            refuse_at(faults)
        return self

    def _model_faults(self) -> dict[KeyPath, Any]:
        if self.model is not None:
            try:
                models.find(self.model)
            except ModelError as error:
                return {("model",): _split(str(error))}
            return {}
        named = [step.size for step in self.steps if isinstance(step, CollectiveStep) and isinstance(step.size, str)]
        hint = f"e.g. {next(iter(models.models()))}"
        return {("model",): fault(f"is required where a step has size: {named[0]}", hint)} if named else {}

    def _name_faults(self) -> dict[KeyPath, Any]:
        names = [step.name for step in self.steps]
        faults: dict[KeyPath, Any] = {
            ("steps", place, "name"): fault(f"another step is called {name!r}") for place, name in repeated(names)
        }
        for place, step in enumerate(self.steps):
            for index, name in enumerate(step.after or ()):
                if name not in names[:place]:
                    known = "; only earlier steps can be waited for" if name in names else ""
                    faults[("steps", place, "after", index)] = fault(
                        f"there is no step {name!r} before this one{known}", nearest(name, names[:place])
                    )
        return faults


def _split(message: str) -> Any:  # noqa: ANN401 - PydanticCustomError
    problem, _, hint = message.partition("; ")
    return fault(problem, hint)


class FlowList(Strict):
    """Flows from a file.

    file: relative to the scenario.
    flows: the list itself; `load` fills it in from `file`, so that a resolved scenario needs no other file.
    connections: `kept` flows find theirs open, `new` ones open their own.
    """

    kind: Literal["flow-list"]
    file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    flows: str | None = None
    format: Literal["auto", "htsim", "csv"] = "auto"
    connections: Connection = "kept"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.file is None and self.flows is None:
            refuse_at({("file",): fault("is required", "name a flow list, e.g. permutation.cm")})
        return self


def _workload_tag(workload: Any) -> str | None:  # noqa: ANN401 - a validator's input
    kind = workload.get("kind") if isinstance(workload, dict) else getattr(workload, "kind", None)
    return f"<{kind}>" if kind in ("collectives", "flow-list") else None


Workload = Annotated[
    Annotated[Collectives, Tag("<collectives>")] | Annotated[FlowList, Tag("<flow-list>")],
    Discriminator(_workload_tag),
]
