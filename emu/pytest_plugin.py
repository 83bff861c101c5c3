"""emu's fixtures for pytest; installed with emu, and nothing of emu is imported before one of them is used.

    lab           opens a fabric as a sealed lab: `lab("hybrid", pods=2, rate="20Mbps", ...)` is an emu.LiveLab
    fabric        builds a fabric without a lab: `fabric("fat-tree", k=4)` is what scenarios build
    run_scenario  runs a scenario as `emu run` does: `run_scenario("my.yaml", tries=3)` is an emu.RunRecord

Labs and runs need root and Open vSwitch. Where something is missing, the test is an error that says what to do: a test
that is skipped looks as if all were well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emu.api import ScenarioLike
    from emu.live.client import LiveLab
    from emu.live.pool import LabPool
    from emu.results.record import RunRecord
    from emu.scenario.build import BuiltFabric


@pytest.fixture(scope="session")
def emu_machine() -> None:
    """See that labs can run here; else the tests that need one are errors, each with the first missing thing's fix."""
    from emu.doctor import examine  # noqa: PLC0415 - see this module's text

    lacking = [check for check in examine() if check.required and not check.ok]
    if lacking:
        found = "; ".join(f"{check.name}: {check.detail} (fix: {check.fix})" for check in lacking)
        pytest.fail(f"no lab can run here: {found}\nfor all prerequisites: sudo emu doctor", pytrace=False)


@pytest.fixture(scope="session")
def emu_labs(emu_machine: None) -> Iterator[LabPool]:
    """The labs that are open, shared by all tests of the session."""
    from emu.live.pool import LabPool  # noqa: PLC0415

    pool = LabPool()
    yield pool
    pool.close()


@pytest.fixture
def lab(emu_labs: LabPool) -> Callable[..., LiveLab]:
    """Open a fabric as a sealed lab, with the arguments of `emu.open_lab`; returns an `emu.LiveLab`.

    Tests that ask for the same fabric share one lab, and find it as it was at first: its first circuits, no connection
    open. Only counters go on. It is closed at the session's end.
    """
    from emu.live.specify import specify  # noqa: PLC0415

    def opened(kind: str | Callable[..., Any], **options: Any) -> LiveLab:  # noqa: ANN401
        own = {name: options.pop(name) for name in ("scale", "emulation", "transport", "plugins") if name in options}
        return emu_labs.lab(specify(kind, options, **own))

    return opened


@pytest.fixture
def fabric() -> Callable[..., BuiltFabric]:
    """Build a fabric without a lab: a kind, and the options that an entry of a scenario's `fabrics:` may have.

    Returns what scenarios build: `.fabric` (nodes, ports, links), `.epoch` (its first circuits), `.policy`. The kind is
    a builder's name, or a builder itself; `plugins` names Python files that register builders. Needs no root.
    """
    from emu.live.specify import specify  # noqa: PLC0415

    def built(kind: str | Callable[..., Any], **options: Any) -> BuiltFabric:  # noqa: ANN401
        plugins = options.pop("plugins", ())
        return specify(kind, options, plugins=plugins).built

    return built


@pytest.fixture
def run_scenario(emu_machine: None, tmp_path: Path) -> Callable[..., RunRecord]:
    """Run a scenario, with the arguments of `emu.run`, into the test's own directory; returns an `emu.RunRecord`.

    tries: a run that is not VALID is made again, up to so many in all, for another program may have kept the machine
    busy; the last one is returned whatever its verdict. `accept` decides which is good enough instead.
    """
    from emu.api import run  # noqa: PLC0415

    made = 0

    def running(
        scenario: ScenarioLike,
        *,
        tries: int = 1,
        accept: Callable[[RunRecord], bool] = lambda record: record.valid,
        **options: Any,  # noqa: ANN401
    ) -> RunRecord:
        nonlocal made
        if tries < 1:
            raise ValueError(f"tries={tries}: a scenario is run at least once")
        for _ in range(tries):
            made += 1
            record = run(scenario, **{"out": tmp_path / f"run-{made}", **options})
            if accept(record):
                break
        return record

    return running
