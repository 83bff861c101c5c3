"""A run's tables in a few rows: what a program prints or plots first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from emu.verdict.levels import Level

SUMMARY_COLUMNS: Final[Mapping[str, str]] = {
    "fabric": "string",
    "phase": "string",
    "what": "string",
    "label": "string",
    "kind": "string",
    "bytes": "Int64",
    "count": "Int64",
    "time_s": "Float64",
    "time_min_s": "Float64",
    "time_max_s": "Float64",
    "ideal_s": "Float64",
    "ratio": "Float64",
    "busbw_Bps": "Float64",
    "verdict": "string",
}
"""The columns of a summary and their types."""


def summarise_tables(
    phases: pd.DataFrame, collectives: pd.DataFrame, flows: pd.DataFrame, verdicts: Mapping[str, Level]
) -> pd.DataFrame:
    """The three tables of a run as one row for each group that belongs together, in modelled seconds and bytes.

    what: `phase`; `collective`, those of one step (`label`), `kind` and size; or `flows`, those of a phase that are
    part of no collective and leave their host. count: how many rows of the table the group has, all repeats together.
    time_s: their median duration, CCT or FCT, with the smallest and the largest beside; ideal_s: the median of their
    ideals; ratio: time_s by ideal_s. busbw_Bps: the median. bytes: of one collective (S), or of all flows of the group
    in one repeat on average. verdict: the fabric's.
    Rows are in the order of the fabrics and then of the phases; a phase's own row comes first.
    """
    alone = flows[(flows["collective"] == "") & (flows["how"] != "local")]
    parts = [
        _grouped(phases, ["fabric", "phase"], "duration_s", "phase"),
        _grouped(collectives, ["fabric", "phase", "label", "kind", "bytes"], "cct_s", "collective"),
        _with_bytes(_grouped(alone, ["fabric", "phase"], "fct_s", "flows"), alone),
    ]
    found = [part for part in parts if len(part)]
    if not found:
        return pd.DataFrame(columns=list(SUMMARY_COLUMNS)).astype(dict(SUMMARY_COLUMNS))
    rows = pd.concat(found, ignore_index=True).reindex(columns=[*SUMMARY_COLUMNS, "start_s"])
    rows["ratio"] = (rows["time_s"] / rows["ideal_s"]).where(rows["ideal_s"] > 0)
    rows["verdict"] = rows["fabric"].map(dict(verdicts))
    for name in ("label", "kind"):
        rows[name] = rows[name].astype("string").fillna("")
    rows = _in_order(rows, list(verdicts))
    return rows[list(SUMMARY_COLUMNS)].astype(dict(SUMMARY_COLUMNS))


def _in_order(rows: pd.DataFrame, fabrics: list[str]) -> pd.DataFrame:
    rows["place"] = rows["fabric"].map(fabrics.index)
    rows["begun"] = rows.groupby(["fabric", "phase"], sort=False)["start_s"].transform("min")
    return rows.sort_values(["place", "begun", "phase", "start_s"], kind="stable", ignore_index=True)


def _grouped(table: pd.DataFrame, keys: list[str], time: str, what: str) -> pd.DataFrame:
    groups = table.groupby(keys, sort=False, dropna=False)
    wanted = {
        "count": (time, "size"),
        "time_s": (time, "median"),
        "time_min_s": (time, "min"),
        "time_max_s": (time, "max"),
        "ideal_s": ("ideal_s", "median"),
        "start_s": ("start_s", "min"),
    }
    if "busbw_Bps" in table:
        wanted["busbw_Bps"] = ("busbw_Bps", "median")
    rows = groups.agg(**wanted).reset_index()
    rows["what"] = what
    return rows


def _with_bytes(rows: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """What one repeat's flows of each phase carry together, the mean over the repeats."""
    groups = flows.groupby(["fabric", "phase"], sort=False)
    per_repeat = (groups["bytes"].sum() / groups["repeat"].nunique()).round().astype("Int64")
    return rows.merge(per_repeat.rename("bytes").reset_index(), on=["fabric", "phase"], how="left")
