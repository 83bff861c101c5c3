"""What a report shows side by side: every fabric of every run, each a `Series` with a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from emu.results.manifest import FabricEntry
from emu.results.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Texts = list[str]


@dataclass(frozen=True)
class Run:
    """One run directory. place: from 0, in the order in which they were given. label: told apart from the others."""

    place: int
    label: str
    record: RunRecord

    @property
    def directory(self) -> Path:
        """Where it is."""
        return self.record.directory

    @property
    def predicted(self) -> bool:
        """Whether the model made it, so that nothing was measured and nothing can be judged."""
        return self.record.manifest.engine == "model"


@dataclass(frozen=True)
class Series:
    """One fabric of one run. place: from 0; its colour follows from it. label: how every chart calls it."""

    place: int
    label: str
    run: Run
    entry: FabricEntry

    @property
    def name(self) -> str:
        """How its scenario calls it."""
        return self.entry.name

    @property
    def predicted(self) -> bool:
        """Whether the model made it; see Run."""
        return self.run.predicted

    @cached_property
    def flows(self) -> pd.DataFrame:
        """Its transfers."""
        return self._rows(self.run.record.flows)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """Its collectives."""
        return self._rows(self.run.record.collectives)

    @cached_property
    def phases(self) -> pd.DataFrame:
        """Its phases."""
        return self._rows(self.run.record.phases)

    @cached_property
    def circuits(self) -> pd.DataFrame:
        """Its changes of circuits."""
        return self._rows(self.run.record.circuits)

    @cached_property
    def circuit_use(self) -> pd.DataFrame:
        """What its circuits carried."""
        return self._rows(self.run.record.circuit_use)

    @cached_property
    def links(self) -> pd.DataFrame:
        """Its links."""
        return self._rows(self.run.record.links)

    @cached_property
    def events(self) -> pd.DataFrame:
        """What happened to its circuits and tasks, and what was decided."""
        return self._rows(self.run.record.events)

    @property
    def phase_names(self) -> Texts:
        """Its phases in the order in which they began."""
        began = self.phases.groupby("phase", sort=False)["start_s"].min().sort_values(kind="stable")
        return [str(name) for name in began.index]

    def end(self, repeat: int) -> float:
        """Modelled seconds from time zero to the end of a repeat, from 1."""
        return self.entry.repeats[repeat - 1].end_s

    def _rows(self, table: pd.DataFrame) -> pd.DataFrame:
        return table[table["fabric"] == self.name].reset_index(drop=True)


def load_series(directories: Sequence[Path]) -> tuple[list[Run], list[Series]]:
    """The runs in some directories, and every fabric of each. Raises InputError for one that holds no whole run."""
    records = [RunRecord.load(directory) for directory in directories]
    runs = _told_apart([Run(place, label, records[place]) for place, label in enumerate(_run_labels(records))])
    found = [(run, entry) for run in runs for entry in run.record.manifest.fabrics]
    labels = [_label(run, entry, runs) for run, entry in found]
    return runs, [Series(place, labels[place], run, entry) for place, (run, entry) in enumerate(found)]


def numbers(frame: pd.DataFrame, column: str) -> Floats:
    """A column as floats, not-a-number where there is no number."""
    return frame[column].to_numpy(dtype=np.float64, na_value=np.nan)


def texts(frame: pd.DataFrame, column: str) -> Texts:
    """A column as texts."""
    return [str(value) for value in frame[column].tolist()]


def phase_order(series: Sequence[Series]) -> Texts:
    """The phases of all series, each once, in the order in which they began."""
    return list(dict.fromkeys(name for one in series for name in one.phase_names))


def _run_labels(records: Sequence[RunRecord]) -> Texts:
    """By the scenario's name; by the directory where names repeat; numbered where these do too."""
    names = [record.manifest.name for record in records]
    if len(set(names)) < len(names):
        names = [record.directory.resolve().name for record in records]
    twice, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if twice[name] > 1 else name)
    return labels


def _told_apart(runs: list[Run]) -> list[Run]:
    """The runs; where some were predicted and others measured, each label says which."""
    if len({run.predicted for run in runs}) == 1:
        return runs
    return [replace(run, label=f"{run.label} ({'predicted' if run.predicted else 'measured'})") for run in runs]


def _label(run: Run, entry: FabricEntry, runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return entry.name
    fabrics = {tuple(fabric.name for fabric in each.record.manifest.fabrics) for each in runs}
    return run.label if len(fabrics) == 1 and len(fabrics.pop()) == 1 else f"{run.label}: {entry.name}"
