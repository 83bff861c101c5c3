"""Runs the points of a sweep: by the model on all processors, or in labs one after the other."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from emu.errors import EmuError, InputError
from emu.progress import Listener, Progress, silent
from emu.scenario.load import load_plugins
from emu.scenario.schema import Scenario
from emu.sweep.points import Engine, Point
from emu.sweep.store import Store

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2): which signal a process gets when its parent ends."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a point. directory: its run directory. kept: it was there. problem: why it failed, or ""."""

    point: Point
    directory: Path
    kept: bool = False
    problem: str = ""


def run_sweep(
    points: Sequence[Point],
    store: Store,
    engine: Engine,
    *,
    jobs: int | None = None,
    plugins: Sequence[Path] = (),
    listener: Listener = silent,
) -> list[Result]:
    """Run every point that the store does not hold, and return the results in the order of the points.

    jobs: how many processes predict at once; default: one for each processor. Labs are opened one after the other.
    A point that fails (a circuit that is never laid, a lab that does not open) does not keep others from running.

    Raises InputError for plugins that cannot be loaded, and KeyboardInterrupt; every point that was finished is kept.
    """
    done = {
        place: Result(point, store.place(point), kept=True) for place, point in enumerate(points) if store.holds(point)
    }
    missing = [place for place in range(len(points)) if place not in done]
    if done:
        listener(Progress("plan", f"{len(done)} of {len(points)} points are there already"))
    try:
        found = _predicted if engine == "model" else _measured
        for count, (place, problem) in enumerate(found(points, missing, store, plugins, jobs, listener), start=1):
            point = points[place]
            done[place] = Result(point, store.place(point), problem=problem)
            text = f"{len(done)} of {len(points)}: {point.title}" + (f": {problem}" if problem else "")
            listener(Progress("predict" if engine == "model" else "done", text, "sweep", count / len(missing)))
    finally:
        store.give()
    return [done[place] for place in range(len(points))]


# -- labs -------------------------------------------------------------------------------------------------------------


def _measured(
    points: Sequence[Point],
    missing: Sequence[int],
    store: Store,
    plugins: Sequence[Path],
    _: int | None,
    listener: Listener,
) -> Iterator[tuple[int, str]]:
    """Measure one point after the other; the place of each, and why it failed."""
    for place in missing:
        yield place, _measure(points[place], store, plugins, listener)


def _measure(point: Point, store: Store, plugins: Sequence[Path], listener: Listener) -> str:
    from emu.runner import run_scenario  # noqa: PLC0415 - sweeps of the model need nothing of labs

    try:
        outcome = run_scenario(point.scenario, out=store.draft(point), plugins=plugins, listener=listener)
    except EmuError as error:
        store.discard(point)
        return str(error)
    except BaseException:
        store.discard(point)
        raise
    if outcome.interrupted:
        store.discard(point)
        raise KeyboardInterrupt
    store.keep(point)
    return ""


# -- the model --------------------------------------------------------------------------------------------------------


def _predicted(
    points: Sequence[Point],
    missing: Sequence[int],
    store: Store,
    plugins: Sequence[Path],
    jobs: int | None,
    _: Listener,
) -> Iterator[tuple[int, str]]:
    """Predict points in as many processes as there are processors; the place of each as it ends, and why it failed."""
    workers = min(jobs or len(os.sched_getaffinity(0)), len(missing))
    if not workers:
        return
    load_plugins(plugins)  # what is wrong with them is said once, and here
    with _pool(workers, plugins) as pool:
        futures: dict[Future[str], int] = {}
        for place in missing:
            draft = store.draft(points[place])
            futures[pool.submit(_predict, points[place].scenario.to_json(), draft)] = place
        for future in as_completed(futures):
            place = futures[future]
            try:
                problem = future.result()
            except BrokenProcessPool as error:
                raise EmuError(
                    f"a process of the sweep was ended ({error})",
                ) from error
            if problem:
                store.discard(points[place])
            else:
                store.keep(points[place])
            yield place, problem


@contextmanager
def _pool(workers: int, plugins: Sequence[Path]) -> Iterator[ProcessPoolExecutor]:
    """Processes that predict; however this one leaves, they end with it."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (os.getpid(), tuple(plugins)))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(parent: int, plugins: tuple[Path, ...]) -> None:
    """Make a new process ready: it dies with its parent, and leaves Ctrl-C to it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_plugins(plugins)


def _predict(scenario: str, draft: Path) -> str:
    """Predict one point into its directory; why it failed, if so."""
    from emu.model.predicting import predict_scenario  # noqa: PLC0415 - the parent needs nothing of it

    try:
        predict_scenario(Scenario.from_json(scenario), out=draft)
    except (EmuError, InputError) as error:
        return str(error)
    return ""
