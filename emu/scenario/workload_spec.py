"""`workload:` - collectives in steps, an iteration of RL training, or a list of flows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, Tag, model_validator

from emu import plugins
from emu.errors import InputError, KeyPath
from emu.scenario import options
from emu.scenario.fields import Duration, Label, PositiveDuration, Strict, Whole, fault, nearest, refuse_at, repeated
from emu.scenario.rl_spec import RlWorkload
from emu.scenario.shorthand import MAX_RANK, Names, Ranks, StepSize, Sweep
from workloads import models
from workloads.collectives import algorithms
from workloads.models import Dtype, ModelError
from workloads.protocol import Algorithm, Connection
from workloads.registry import WORKLOADS

MAX_ROUNDS = 20_000
"""Of `repeat` times the sizes of a step."""

StepCollective = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "permutation", "incast"
]
"""The kinds that a size and a group describe: all but exchanges, which need a matrix."""


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
    """All hosts compute for a while; nothing crosses the fabric.

    compute: for how long.
    """

    compute: PositiveDuration


class CollectiveStep(_Step):
    """A collective of a group, once per size.

    collective: which one.
    algorithm: default: the usual one for the collective.
    size: S of the formulas; or a quantity of the workload's model; a list is gone through.
    sweep: instead of `size`.
    ranks: who takes part: all, a list, or text such as 0-7,12.
    order: in which the algorithm links them: as listed, or shuffled by the seed.
    root: the rank that a broadcast starts from, or that an incast goes to; default: the first of the group.
    chunks: into how many pieces a chain or tree is cut.
    pods: of a two-level broadcast, how many ranks each pod has, from the root on; the first holds the data already.
    buckets: layer-gradients are merged into at most so many collectives.
    """

    collective: StepCollective
    algorithm: Algorithm | None = None
    size: StepSize | None = None
    sweep: Sweep | None = None
    ranks: Ranks = "all"
    order: Literal["sequence", "random"] = "sequence"
    root: Annotated[Whole, Field(ge=0, le=MAX_RANK)] | None = None
    chunks: Annotated[Whole, Field(ge=1, le=65_536)] | None = None
    pods: Annotated[tuple[Annotated[Whole, Field(ge=1, le=MAX_RANK)], ...], Field(min_length=2)] | None = None
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
        if self.algorithm == "two-level" and self.pods is None:
            faults[("pods",)] = "is required: how many ranks each pod has, e.g. [4, 4, 4, 4]"
        if self.pods is not None and self.algorithm != "two-level":
            faults[("pods",)] = "only means something with algorithm: two-level"
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
    steps: one after the other, unless `after` or `at` say otherwise.
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
    format: of the list; `auto` tells by its first lines.
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


class OwnWorkload(Strict):
    """A workload of the user's own (see `emu.plugins`); what its function takes are the fields of a subclass.

    kind: its name.
    """

    kind: str


@functools.cache
def own_workload(name: str, function: Callable[..., Any]) -> type[OwnWorkload]:
    """The schema of a workload of the user's own. Raises InputError for options that no scenario can give."""
    try:
        return options.model_of("workload", name, plugins.options(function), OwnWorkload)
    except ValueError as error:
        raise InputError(f"workload {name}: {error}") from error


def _read_own(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """Validate with the model that its function gives."""
    if not isinstance(value, Mapping):
        return value
    try:
        return own_workload(value["kind"], plugins.find("workload", value["kind"])).model_validate(value)
    except InputError as error:
        refuse_at({("kind",): fault(str(error))})


def workload_kinds() -> tuple[str, ...]:
    """What `kind` of a workload may say: the built-in ones, then the user's own."""
    return (*WORKLOADS, *plugins.names("workload"))


def _workload_tag(workload: Any) -> str | None:  # noqa: ANN401 - a validator's input
    if isinstance(workload, OwnWorkload):
        return "<own>"
    kind = workload.get("kind") if isinstance(workload, dict) else getattr(workload, "kind", None)
    if kind in WORKLOADS:
        return f"<{kind}>"
    return "<own>" if kind in plugins.names("workload") else None


Workload = Annotated[
    Annotated[Collectives, Tag("<collectives>")]
    | Annotated[RlWorkload, Tag("<rl-iteration>")]
    | Annotated[FlowList, Tag("<flow-list>")]
    | Annotated[SerializeAsAny[OwnWorkload], BeforeValidator(_read_own), Tag("<own>")],
    Discriminator(_workload_tag),
]
