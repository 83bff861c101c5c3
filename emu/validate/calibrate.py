"""Fits the TCP-like transport's parameters to packet runs by least squares.

What is fitted are medians of measured collective completion times, one for each step, size and fabric, by the logarithm
of their ratio to the model's, outliers weighed down (Cauchy's loss). The cost of a message and the round trip are
fitted as wall time, for a lab of another dilation has the same; efficiency has no unit. The time-out after the dark is
fitted to the transport's share of the service's dark time, where circuits changed under flows; else it is what the runs
were set to.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from emu.errors import InputError
from emu.model.transport import IDEAL, Transport
from emu.progress import Listener, Progress, silent
from emu.scale import Scale
from emu.validate.fitted import Fit, FittedTransport
from emu.validate.held import Group, HeldRun, groups_of
from emu.validate.machine import describe_machine
from emu.wire import payload_per_frame

Vector = npt.NDArray[np.float64]
_NAMES: Final = ("efficiency", "message", "round_trip")
_START: Final = (0.99, 0.5, 0.5)
_LOWEST: Final = (0.5, 0.0, 0.0)
_HIGHEST: Final = (1.0, 100.0, 100.0)
"""Of efficiency, and wall milliseconds of a message and a round trip."""
_FEWEST: Final = len(_NAMES) + 1
"""Points that a fit needs at least: more than parameters."""
_STEP: Final = 0.01
"""Relative, of numeric derivatives: the model's times have small steps themselves."""
_FINE: Final = 1e-4
"""What improves the fit by less than this share ends it: measured times are no finer."""
_USUAL: Final = 0.05
"""Residuals beyond this weigh less and less: what no transport explains must not bend the rest."""
_EVALUATIONS: Final = 40
"""Steps of the fit at most, each with its derivatives."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What changes of circuits cost flows. dark, share: modelled seconds of each, without light and beside that."""

    dark: Vector
    share: Vector


def calibrate(directories: Sequence[Path], listener: Listener = silent) -> FittedTransport:
    """Fit a transport to the packet runs in these directories.

    Times hold at the scale of the first. Raises InputError for directories that hold no packet run, that were run with
    different settings of TCP, or that have too few different collectives.
    """
    runs = [HeldRun.load(directory) for directory in directories]
    if not runs:
        raise InputError("there is no run to fit", hint="name run directories of emu run")
    _check_settings(runs)
    groups = [group for run in runs for group in groups_of(run, by_size=True) if group.kind == "collective"]
    if len(groups) < _FEWEST:
        problem = f"these runs have {len(groups)} different collectives and sizes; a fit needs {_FEWEST}"
        raise InputError(problem, hint="run more steps, sizes or fabrics")
    retransmission, recovery = _retransmission(runs)
    found, errors, residuals = _least_squares(runs, groups, retransmission, listener)
    reference = runs[0].scale
    stretch = 1e-3 / reference.tdf
    fit = Fit(
        sigma=reference.sigma,
        beta=reference.beta,
        runs=tuple(str(run.directory) for run in runs),
        workloads=tuple(sorted({run.workload for run in runs})),
        fabrics=tuple(sorted({group.run.fabric_digest(group.fabric) for group in groups})),
        sizes=tuple(sorted(set().union(*(group.sizes for group in groups)))),
        points=len(groups),
        residual=_rms(residuals),
        before=_rms(_residuals(runs, groups, lambda _: IDEAL)),
        errors=dict(zip(_NAMES, (errors * np.array((1.0, stretch, stretch))).tolist(), strict=True)),
        recovery=recovery,
    )
    return FittedTransport(_transport(found, retransmission, runs[0], reference), fit)


def _check_settings(runs: Sequence[HeldRun]) -> None:
    for run in runs[1:]:
        if run.scenario.transport != runs[0].scenario.transport:
            problem = f"{run.directory} was run with other settings of TCP than {runs[0].directory}"
            raise InputError(problem, hint="fit runs of one transport")


# -- rates and messages ---------------------------------------------------------------------------------------------


def _least_squares(
    runs: Sequence[HeldRun], groups: Sequence[Group], retransmission: float, listener: Listener
) -> tuple[Vector, Vector, Vector]:
    """The parameters of `_NAMES`, their standard errors, and the residuals that are left."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - half a second

    best = math.inf

    def off(parameters: Vector) -> Vector:
        nonlocal best
        found = _residuals(runs, groups, lambda run: _transport(parameters, retransmission, run, run.scale))
        best = min(best, _rms(found))
        listener(Progress("calibrate", f"within {best:.2%} so far", "transport"))
        return found

    solved = least_squares(
        off,
        _START,
        bounds=(_LOWEST, _HIGHEST),
        diff_step=_STEP,
        x_scale=(0.01, 1.0, 1.0),
        loss="cauchy",
        f_scale=_USUAL,
        ftol=_FINE,
        xtol=_FINE,
        max_nfev=_EVALUATIONS,
    )
    return np.asarray(solved.x), _errors(np.asarray(solved.jac), np.asarray(solved.fun)), np.asarray(solved.fun)


def _residuals(runs: Sequence[HeldRun], groups: Sequence[Group], transport: Callable[[HeldRun], Transport]) -> Vector:
    """By group, the logarithm of measured by predicted, the median of its times."""
    found: dict[tuple[Path, str], Any] = {}
    for run in runs:
        for built in run.built:
            found[run.directory, built.fabric.name] = run.predict(built, transport(run))
    ratios = (group.ratios(found[group.run.directory, group.fabric]) for group in groups)
    return np.array([math.log(statistics.median(values)) if values else 0.0 for values in ratios])


def _transport(parameters: Vector, retransmission: float, run: HeldRun, scale: Scale) -> Transport:
    """The transport with these parameters in a lab of that scale, in modelled seconds."""
    efficiency, message, round_trip = (float(value) for value in parameters)
    segment = payload_per_frame(run.scenario.emulation.mtu)
    return Transport(
        efficiency=efficiency,
        message=1e-3 * message / scale.tdf,
        round_trip=1e-3 * round_trip / scale.tdf,
        initial_window=run.scenario.transport.initcwnd * segment * scale.sigma,
        retransmission=retransmission,
        date=date.today().isoformat(),
        machine=describe_machine(),
    )


def _errors(jacobian: Vector, residuals: Vector) -> Vector:
    """Standard errors of least squares: the residuals' variance through the inverse of J^T J."""
    freedom = max(1, len(residuals) - jacobian.shape[1])
    variance = float(residuals @ residuals) / freedom
    errors: Vector = np.sqrt(np.maximum(np.diag(variance * np.linalg.pinv(jacobian.T @ jacobian)), 0.0))
    return errors


def _rms(values: Vector) -> float:
    return float(np.sqrt(np.mean(values**2)))


# -- recovery after the dark ----------------------------------------------------------------------------------------


def _retransmission(runs: Sequence[HeldRun]) -> tuple[float, int]:
    """The smallest time-out in modelled seconds, and how many changes it was fitted to."""
    asked = runs[0].scenario.transport.rto_min
    shares = [pair for run in runs for pair in _shares(run)]
    if not shares:
        return asked, 0
    dark, share = (np.array(values) for values in zip(*shares, strict=True))
    return fit_retransmission(Shares(dark, share), asked), len(shares)


def _shares(run: HeldRun) -> Iterator[tuple[float, float]]:
    """Data plane's dark time and transport's share of every change that stopped flows and lost what they sent."""
    for row in run.circuits():
        dark, share = row["data_plane_dark_s"], row["transport_share_s"]
        if row["affected_flows"] and row["mode"] == "drop" and dark is not None and share is not None:
            yield float(dark), float(share)


def fit_retransmission(shares: Shares, asked: float) -> float:
    """The time-out whose recoveries are nearest to what was seen, by least squares.

    The recovery after a given dark time has jumps (one more time-out fits into it), so the sum of squares is looked at
    everywhere from a quarter to four times what was asked for, and refined from the best place.
    """
    from scipy.optimize import brute  # noqa: PLC0415 - half a second

    def squares(logarithm: Vector) -> float:
        transport = Transport(retransmission=asked * math.exp(float(np.ravel(logarithm)[0])))
        expected = np.array([transport.recovery(float(dark)) for dark in shares.dark])
        return float(((expected - shares.share) ** 2).sum())

    wide = math.log(4.0)
    best = brute(squares, ((-wide, wide),), Ns=401)
    return asked * math.exp(float(np.ravel(best)[0]))
