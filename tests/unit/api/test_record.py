"""Run directories as data frames."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import emu
from emu.results import read_run, write_run
from emu.results.columns import FLOWS, TABLES
from emu.results.record import RunRecord, read_frame
from emu.results.tabulate import SUMMARY_COLUMNS
from tests.unit.results import synthetic

_DTYPES = {"text": "string", "int": "Int64", "float": "Float64"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("record")


@pytest.fixture(scope="module")
def record(folder: Path) -> RunRecord:
    """Collectives on two fabrics, two repeats."""
    (folder / "run").mkdir()
    write_run(synthetic.outcome(folder, folder / "run"))
    return emu.load(folder / "run")


def test_every_table_has_the_documented_columns_and_types(record: RunRecord) -> None:
    stored = read_run(record.directory)
    for table in TABLES:
        frame = getattr(record, table.name)
        assert list(frame.columns) == [column.name for column in table.columns]
        assert [str(dtype) for dtype in frame.dtypes] == [_DTYPES[column.type] for column in table.columns]
        assert len(frame) == len(stored.tables[table.name])
        for column in table.columns:
            expected = [row[column.name] for row in stored.tables[table.name]]
            assert [None if value is pd.NA else value for value in frame[column.name]] == expected


def test_the_record_says_what_the_manifest_says(record: RunRecord) -> None:
    assert record.directory == record.directory.parent / "run"
    assert (record.verdict, record.valid) == (record.manifest.verdict, record.manifest.verdict == "VALID")
    assert set(record.reasons) == {"fat-tree", "optical"}
    assert record.fabric("optical").ocses == 1
    with pytest.raises(emu.InputError, match=r"no fabric 'ring'; it has fat-tree, optical"):
        record.fabric("ring")


def test_a_partial_run_is_not_valid(folder: Path) -> None:
    (folder / "partial").mkdir()
    whole = synthetic.outcome(folder, folder / "partial")
    write_run(replace(whole, fabrics=whole.fabrics[:1]))
    record = emu.load(folder / "partial")
    assert (record.verdict, record.manifest.partial, record.valid) == ("VALID", True, False)


def test_a_table_is_read_once(record: RunRecord) -> None:
    assert record.flows is record.flows


def test_empty_cells_of_numbers_are_missing_and_integers_stay_exact(tmp_path: Path) -> None:
    """A double cannot hold 2**53 + 1, and a fabric may be called NA."""
    row = dict.fromkeys((column.name for column in FLOWS.columns), "")
    row |= {"fabric": "NA", "repeat": "1", "seed": str(2**63 - 1), "bytes": str(2**53 + 1), "start_s": "0.1"}
    path = tmp_path / "flows.csv"
    path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n" + ",".join(row.values()) + "\n")
    frame = read_frame(path, FLOWS)
    first = frame.iloc[0]
    assert (first["fabric"], first["id"]) == ("NA", "")
    assert (first["seed"], first["bytes"], first["start_s"]) == (2**63 - 1, 2**53 + 1, 0.1)
    assert first["end_s"] is pd.NA
    assert first["retransmits"] is pd.NA


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fabric,repeat\nf,1\n", r"flows\.csv: there is no column"),
        (None, r"no whole run directory: flows\.csv: No such"),
    ],
)
def test_a_spoiled_table_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "flows.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(emu.InputError, match=words):
        read_frame(path, FLOWS)


def test_a_wrong_cell_is_named_with_its_line(record: RunRecord, tmp_path: Path) -> None:
    lines = (record.directory / "flows.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[8] = "many"
    path = tmp_path / "flows.csv"
    path.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n")
    with pytest.raises(emu.InputError, match=r"flows\.csv:3: .*'many'"):
        read_frame(path, FLOWS)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(emu.InputError, match=r"no whole run directory: manifest\.json"):
        emu.load(tmp_path)


def test_the_summary_has_a_row_for_each_phase_and_step(record: RunRecord) -> None:
    rows = record.summary()
    assert {name: str(dtype) for name, dtype in rows.dtypes.items()} == dict(SUMMARY_COLUMNS)
    assert list(rows["fabric"].unique()) == ["fat-tree", "optical"]
    sweep = rows[(rows["fabric"] == "fat-tree") & (rows["label"] == "sweep") & (rows["bytes"] == 128 << 20)]
    assert len(sweep) == 1
    times = record.collectives
    times = times[(times["fabric"] == "fat-tree") & (times["label"] == "sweep") & (times["bytes"] == 128 << 20)]
    row = sweep.iloc[0]
    assert row["count"] == 2  # one in each repeat: the slowdowns are 1.03 and 1.04
    assert row["time_s"] == pytest.approx((times["cct_s"].min() + times["cct_s"].max()) / 2)
    assert row["ratio"] == pytest.approx(1.035)
    assert row["verdict"] == "VALID"
    assert (rows["what"] == "flows").sum() == 0


def test_the_summary_of_flows_counts_their_bytes_once_a_repeat(folder: Path) -> None:
    (folder / "flows").mkdir()
    write_run(synthetic.outcome(folder, folder / "flows", synthetic.FLOWS))
    record = emu.load(folder / "flows")
    rows = record.summary()
    flows = rows[(rows["what"] == "flows") & (rows["fabric"] == "fat-tree")].iloc[0]
    assert (flows["count"], flows["bytes"]) == (32, sum((i + 1) * 16 << 20 for i in range(16)))
    assert flows["time_min_s"] < flows["time_s"] < flows["time_max_s"]


def test_the_summary_of_nothing_has_its_columns(folder: Path) -> None:
    (folder / "none").mkdir()
    write_run(replace(synthetic.outcome(folder, folder / "none"), fabrics=[]))
    rows = emu.load(folder / "none").summary()
    assert len(rows) == 0
    assert list(rows.columns) == list(SUMMARY_COLUMNS)


def test_importing_emu_is_cheap_and_a_record_needs_no_pandas(record: RunRecord) -> None:
    """Nothing of emu but its own name, and pandas only for a table."""
    code = """if True:
    import sys
    import emu
    loaded = {name.split(".")[0] for name in sys.modules}
    assert not loaded & {"pydantic", "pandas", "numpy", "scipy", "networkx", "topologies"}, loaded
    record = emu.load(sys.argv[1])
    assert record.verdict == "VALID"
    assert "pandas" not in sys.modules
    assert len(record.flows)
    assert "pandas" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, str(record.directory)], check=True, timeout=60)


def test_running_and_checking_begin_without_what_few_runs_need() -> None:
    """Each of these takes from a third of a second to two, and every command would wait for it."""
    code = """if True:
    import sys
    import emu.api
    import emu.live.client
    slow = {"scipy", "networkx", "pandas", "plotly", "jinja2", "pyroute2", "os_ken", "mininet", "torch"}
    assert not slow & set(sys.modules), slow & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
