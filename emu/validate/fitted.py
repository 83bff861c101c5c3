"""A fitted transport with what it was fitted on: written by calibration, read back for validation.

The file is what `emu.model.transport.load_transport` reads, and a table `fit` beside it. Its times are modelled seconds
at the scale of the runs it was fitted on; `at` takes them to another scale, where what a message costs a lab is the
same wall time.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from emu.errors import EmuError, InputError
from emu.model.transport import Transport, load_transport
from emu.scale import Scale
from emu.validate.held import Group


@dataclass(frozen=True, slots=True)
class Fit:
    """What parameters were fitted on, and how well.

    sigma, beta: the scale that they hold at. runs: directories. workloads, fabrics: digests. sizes: S of collectives.
    points: how many medians of measured times were fitted. residual: root mean square of their logarithmic ratios to
    the fitted model; before: to the ideal one. errors: by parameter, the standard error, in its unit.
    recovery: to how many changes of circuits the time-out was fitted; 0: it is what the runs were set to.
    """

    sigma: float
    beta: float
    runs: tuple[str, ...]
    workloads: tuple[str, ...]
    fabrics: tuple[str, ...]
    sizes: tuple[int, ...]
    points: int
    residual: float
    before: float
    errors: dict[str, float]
    recovery: int


@dataclass(frozen=True, slots=True)
class FittedTransport:
    """A transport, and what it was fitted on."""

    transport: Transport
    fit: Fit

    def at(self, scale: Scale) -> Transport:
        """The transport in a lab of another scale: a message's cost and a round trip are wall time, a window frames."""
        stretch = Scale(self.fit.sigma, self.fit.beta).tdf / scale.tdf
        return replace(
            self.transport,
            message=self.transport.message * stretch,
            round_trip=self.transport.round_trip * stretch,
            initial_window=self.transport.initial_window * scale.sigma / self.fit.sigma,
        )

    def unseen(self, group: Group) -> bool:
        """Whether workload, fabric and sizes are all others than those of the fit."""
        return (
            group.run.workload not in self.fit.workloads
            and group.run.fabric_digest(group.fabric) not in self.fit.fabrics
            and not group.sizes & set(self.fit.sizes)
        )


_FIT: TypeAdapter[Fit] = TypeAdapter(Fit)
_HEAD = """\
# How TCP was seen to move bytes in a lab, fitted by emu calibrate. Times are modelled seconds at the scale in [fit].
"""


def write_fitted(fitted: FittedTransport, path: Path) -> None:
    """Write a parameter file, whole or not at all. Raises EmuError if the disk does not take it."""
    parameters, fit = asdict(fitted.transport), asdict(fitted.fit)
    errors = fit.pop("errors")
    lines = [_HEAD, *_lines(parameters), "", "[fit]", *_lines(fit), "", "[fit.errors]", *_lines(errors)]
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise EmuError(f"cannot write {path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def read_fitted(path: Path) -> FittedTransport:
    """A parameter file with what it was fitted on. Raises InputError for one without, and as `load_transport` does."""
    transport = load_transport(path)
    values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    if "fit" not in values:
        hint = "emu calibrate writes one; without it nobody can tell what was not fitted on"
        raise InputError(f"{path}: the table [fit] is missing", hint=hint)
    try:
        return FittedTransport(transport, _FIT.validate_python(values["fit"]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(("fit", *map(str, first["loc"])))
        raise InputError(f"{path}: {where}: {first['msg']}") from error


def _lines(values: dict[str, Any]) -> list[str]:
    """Keys and values as TOML: what JSON writes of text, numbers and lists is TOML too."""
    return [f"{key} = {json.dumps(value)}" for key, value in values.items()]
