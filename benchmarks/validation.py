"""The lab's own scenarios, measured and predicted: medians within 5 % for bulk collectives, 10 % for mixed phases."""

from __future__ import annotations

import tempfile
from pathlib import Path

from emu.cli.output import results
from emu.cli.validate import show_lines
from emu.runner import run
from emu.validate.report import validate

SCENARIOS = ("two-collectives", "quickstart")
_FOLDER = Path(__file__).resolve().parents[1] / "scenarios"


def bench_validation() -> bool:
    """Print the table of `emu validate`; True if every run is VALID and every median close to the ideal."""
    with tempfile.TemporaryDirectory() as folder:
        directories = [run(_FOLDER / f"{name}.yaml", out=Path(folder) / name).directory for name in SCENARIOS]
        lines = validate(directories)
    show_lines(results(), lines, fitted=False)
    good = all(line.close is not False and line.verdict == "VALID" for line in lines)
    print("ok" if good else "MISSED")
    return good
