"""A run directory as a program reads it: the manifest, typed, and every table as a pandas data frame.

Nothing but the manifest is read before it is asked for, and pandas is imported only for a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emu.errors import InputError
from emu.results.columns import (
    CIRCUIT_USE,
    CIRCUITS,
    COLLECTIVES,
    EVENTS,
    FLOWS,
    LINKS,
    PHASES,
    Table,
    Type,
)
from emu.results.directory import read_manifest, read_rows
from emu.results.manifest import FabricEntry, Manifest
from emu.verdict.levels import Level, Reason

if TYPE_CHECKING:
    import pandas as pd

_DTYPES: Final[Mapping[Type, str]] = {"text": "string", "int": "Int64", "float": "Float64"}
"""pandas' nullable types: a cell without a number is `pd.NA`, and integers stay integers beside it."""


@dataclass(frozen=True)
class RunRecord:
    """One run, read back from its directory; get one from `emu.run` or `emu.load`.

    Tables have exactly the columns of docs/results.md, in that order, with the types `string`, `Int64` and `Float64`;
    an empty cell of a number is `pd.NA`, an empty text "". Each is read when it is first asked for and then kept:
    copy it before you change it. All of them raise InputError for a file that is missing or malformed.
    """

    directory: Path
    manifest: Manifest

    @classmethod
    def load(cls, directory: Path | str) -> RunRecord:
        """The run in a directory. Raises InputError for one that holds no whole run, or a later version's."""
        place = Path(directory)
        return cls(place, read_manifest(place))

    # -- what the manifest says -------------------------------------------------------------------

    @property
    def verdict(self) -> Level:
        """The worst fabric's: VALID, DEGRADED or INVALID."""
        return self.manifest.verdict

    @property
    def valid(self) -> bool:
        """Whether every number can be trusted, and none is missing: VALID and not partial."""
        return self.verdict == "VALID" and not self.manifest.partial

    @property
    def reasons(self) -> Mapping[str, tuple[Reason, ...]]:
        """By fabric, why it is not simply VALID."""
        return {fabric.name: fabric.verdict.reasons for fabric in self.manifest.fabrics}

    def fabric(self, name: str) -> FabricEntry:
        """What the manifest says of one fabric. Raises InputError, with the names there are, for one that is not there.

        name: as in the column `fabric` of every table.
        """
        found = next((fabric for fabric in self.manifest.fabrics if fabric.name == name), None)
        if found is None:
            known = ", ".join(fabric.name for fabric in self.manifest.fabrics) or "none"
            raise InputError(f"{self.directory} has no fabric {name!r}", hint=f"it has {known}")
        return found

    # -- tables -----------------------------------------------------------------------------------

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row for each transfer: bytes, start, end, FCT, ideal, retransmissions."""
        return self._table(FLOWS)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """One row for each collective: size, CCT, ideal, algbw, busbw."""
        return self._table(COLLECTIVES)

    @cached_property
    def phases(self) -> pd.DataFrame:
        """One row for each phase: duration, ideal, bytes, exposed and hidden communication, dark time."""
        return self._table(PHASES)

    @cached_property
    def circuits(self) -> pd.DataFrame:
        """One row for each change of circuits, with its four figures of dark time."""
        return self._table(CIRCUITS)

    @cached_property
    def circuit_use(self) -> pd.DataFrame:
        """One row for each circuit in each epoch: time lit, bytes, packets lost."""
        return self._table(CIRCUIT_USE)

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row for each direction of a link: bytes, utilisation, drops."""
        return self._table(LINKS)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row for each event: circuits dark and lit, what their policy decided, failures."""
        return self._table(EVENTS)

    def summary(self) -> pd.DataFrame:
        """One row for each phase, for each step and size of its collectives, and for its flows, on each fabric.

        See `emu.results.tabulate.summarise_tables` for the columns. Raises InputError as the tables do.
        """
        from emu.results.tabulate import summarise_tables  # noqa: PLC0415 - it needs pandas

        verdicts = {fabric.name: fabric.verdict.level for fabric in self.manifest.fabrics}
        return summarise_tables(self.phases, self.collectives, self.flows, verdicts)

    def _table(self, table: Table) -> pd.DataFrame:
        return read_frame(self.directory / table.file, table)


def read_frame(path: Path, table: Table) -> pd.DataFrame:
    """A table's file as a data frame. Raises InputError, with the line of the first wrong cell."""
    import pandas as pd  # noqa: PLC0415 - it takes most of a second, and most programs read a manifest only

    rows = read_rows(path, table)
    frame = pd.DataFrame(rows, columns=[column.name for column in table.columns], dtype="object")
    return frame.astype({column.name: _DTYPES[column.type] for column in table.columns})
