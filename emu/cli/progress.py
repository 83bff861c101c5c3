"""Showing where a run is: a live display at a terminal, plain lines anywhere else. Both on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console
from rich.table import Column
from rich.text import Text

from emu.progress import Listener, Progress

_EVERY = 5.0
"""Wall seconds between two plain lines of one stage that tells how far it is."""


@contextmanager
def display(console: Console, *, live: bool) -> Iterator[Listener]:
    """The listener to give to a run, and the display while it lasts."""
    if not live:
        yield PlainLines(console)
        return
    with _bars(console) as bars:
        yield LiveLines(bars)


class PlainLines:
    """One line for each stage, and now and then one of how far it is."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._stage: tuple[str, str] | None = None
        self._said = ""
        self._next = 0.0

    def __call__(self, said: Progress) -> None:
        """Hear one progress."""
        stage = (said.fabric, said.stage)
        if stage == self._stage and (said.text == self._said or (said.fraction is not None and not self._due())):
            return
        self._stage, self._said, self._next = stage, said.text, self._clock() + _EVERY
        place = f"{said.fabric}: " if said.fabric else ""
        self._console.print(Text(f"emu: {place}{said.stage}: {said.text}"), soft_wrap=True)

    def _due(self) -> bool:
        return self._clock() >= self._next


class LiveLines:
    """One moving line for each fabric; what is decided before there are labs is printed above."""

    def __init__(self, bars: progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, progress.TaskID] = {}

    def __call__(self, said: Progress) -> None:
        """Hear one progress."""
        if not said.fabric:
            if said.stage in ("plan", "report"):
                self._bars.console.print(Text(said.text, style="dim"))
            return
        task = self._task(said.fabric)
        done = 1.0 if said.stage == "done" else said.fraction
        self._bars.update(
            task, stage=said.stage, text=said.text, total=None if done is None else 1.0, completed=done or 0
        )

    def _task(self, fabric: str) -> progress.TaskID:
        """The fabric's line; a new one ends those of the labs before it."""
        if fabric not in self._tasks:
            for earlier in self._tasks.values():
                self._bars.update(earlier, stage="done", text="", total=1.0, completed=1.0)
                self._bars.stop_task(earlier)
            self._tasks[fabric] = self._bars.add_task(fabric, total=None, stage="", text="")
        return self._tasks[fabric]


def _bars(console: Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False, style="bold"),
        progress.TextColumn("{task.fields[stage]}", markup=False, table_column=Column(min_width=10)),
        progress.BarColumn(bar_width=16),
        progress.TextColumn(
            "{task.fields[text]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
        progress.TimeElapsedColumn(),
        console=console,
        expand=True,
        transient=True,
        refresh_per_second=4,  # the lab needs the processors more
    )
