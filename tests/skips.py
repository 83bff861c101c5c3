"""A skipped test counts as failed, unless README.md's table of allowed skips names it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

HEADING = "## Tests that may be skipped"


def allowed_skips(readme: Path) -> tuple[str, ...]:
    """The patterns of test ids in the first column of the table, each in backticks."""
    _, _, after = readme.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    section = re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0]
    return tuple(re.findall(r"^\| *`([^`]+)` *\|", section, flags=re.MULTILINE))


class NoSilentSkips:
    """A pytest plugin: fails the session if a test was skipped that may not be."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        """`allowed`: patterns of test ids, as in a shell."""
        self._allowed = allowed
        self._refused: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test was skipped as a whole or while it ran; an expected failure is no skip."""
        if not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A whole module was skipped."""
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not any(fnmatchcase(report.nodeid, pattern) for pattern in self._allowed):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
            self._refused[report.nodeid] = str(reason).removeprefix("Skipped: ")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail what would otherwise have passed."""
        if self._refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them."""
        if self._refused:
            terminalreporter.section("skipped, and README.md does not allow it", red=True)
        for test, reason in self._refused.items():
            terminalreporter.line(f"{test}: {reason}")
