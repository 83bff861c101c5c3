"""What a fabric with an OCS says of its circuits: which hold when (`schedule:`), and who decides (`policy:`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, SerializeAsAny, TypeAdapter

from controllers.policies import BUILT_IN
from controllers.policies.shapes import Shape
from emu import plugins
from emu.errors import InputError
from emu.scenario import options
from emu.scenario.fields import Duration, Label, PositiveDuration, Refusal, Strict, Whole, nearest

Circuits = dict[str, tuple[str, ...]]
"""By OCS: pairs as `controllers.circuits.resolve` reads them, `t0-t1` for instance."""

MOST_CHANGES = 10_000


class Change(Strict):
    """From `at` on the fabric moves to these circuits; an OCS that is not named goes dark.

    at: modelled time.
    circuits: by OCS, as in the fabric's `circuits`.
    """

    at: Duration
    circuits: Circuits


class Rotation(Strict):
    """From `start` on, one of `matchings` every `period`, in turn and for ever; each begins with the dark time.

    period: of one matching, its dark time included.
    start: when the first begins, modelled time.
    matchings: circuits by OCS, as in the fabric's `circuits`.
    """

    period: PositiveDuration
    start: Duration = 0.0
    matchings: Annotated[tuple[Circuits, ...], Field(min_length=1, max_length=1000)]


Changes = Annotated[tuple[Change, ...], Field(max_length=MOST_CHANGES)]
_CHANGES: TypeAdapter[tuple[Change, ...]] = TypeAdapter(Changes)


def _read_schedule(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """One clear message instead of one for each form of a schedule."""
    if isinstance(value, Rotation):
        return value
    return Rotation.model_validate(value) if isinstance(value, dict) else _CHANGES.validate_python(value)


Schedule = Annotated[Changes | Rotation, BeforeValidator(_read_schedule)]
"""Changes at instants, or a rotation."""


SHAPES: tuple[str, ...] = get_args(Shape)


def _read_template(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        raise Refusal(f"{value!r:.60} is no template", f"write {', '.join(SHAPES)}, or circuits as in {{o0: [t0-t1]}}")
    if value not in SHAPES:
        raise Refusal(f"there is no template {value!r:.60}", nearest(value, SHAPES))
    return value


Template = Annotated[Shape | Circuits, BeforeValidator(_read_template)]


class TemplatesPolicy(Strict):
    """Circuits by phase, behind the slack gate.

    margin: time that must be left over when the circuits are lit and the phase needs them.
    phases: by phase, a shape that is fitted to the fabric, or the circuits themselves.
    """

    kind: Literal["templates"]
    margin: Duration = 0.0
    phases: Annotated[dict[Label, Template], Field(min_length=1, max_length=100)]


class OneShotPolicy(Strict):
    """Circuits laid once, for the demand of the whole workload, before it begins.

    rings: planes that carry rings over all sites, so that everybody is reached; the others follow the demand.
    """

    kind: Literal["one-shot"] = "one-shot"
    rings: Annotated[Whole, Field(ge=1, le=1000)] = 1


class OwnPolicy(Strict):
    """A policy of the user's own (see `emu.plugins`); what its function takes are the fields of a subclass.

    kind: its name.
    """

    kind: str


@functools.cache
def own_policy(name: str, function: Callable[..., Any]) -> type[OwnPolicy]:
    """The schema of a policy of the user's own. Raises InputError for options that no scenario can give."""
    try:
        return options.model_of("policy", name, plugins.options(function), OwnPolicy)
    except ValueError as error:
        raise InputError(f"policy {name}: {error}") from error


def _read_policy(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """One clear message instead of one for each form of a policy."""
    if value is None or isinstance(value, TemplatesPolicy | OneShotPolicy | OwnPolicy):
        return value
    kind = value.get("kind") if isinstance(value, Mapping) else value
    if kind in plugins.names("policy"):
        return _read_own(kind, value if isinstance(value, Mapping) else {"kind": kind})
    if kind not in BUILT_IN:
        hint = nearest(kind, (*BUILT_IN, *plugins.names("policy")))
        raise Refusal(f"there is no policy {kind!r:.60}", f"{hint}; one of your own needs --plugin FILE")
    if kind == "templates":
        if not isinstance(value, Mapping):
            raise Refusal("templates need phases", "write {kind: templates, phases: {training: mesh}}")
        return TemplatesPolicy.model_validate(value)
    if kind == "one-shot":
        return OneShotPolicy.model_validate(value if isinstance(value, Mapping) else {})
    if isinstance(value, Mapping) and len(value) > 1:
        raise Refusal(f"{kind} takes no more keys", f"write policy: {kind}")
    return kind


def _read_own(kind: str, value: Mapping[str, Any]) -> OwnPolicy:
    try:
        return own_policy(kind, plugins.find("policy", kind)).model_validate(value)
    except InputError as error:
        raise Refusal(str(error)) from error


Policy = Annotated[
    Literal["static", "scheduled"] | OneShotPolicy | TemplatesPolicy | SerializeAsAny[OwnPolicy] | None,
    BeforeValidator(_read_policy),
]
"""Who decides circuits; None: the schedule if there is one, else nobody."""
