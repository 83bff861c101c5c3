"""Rules on the lab itself: was it whole, were its links what they should be, was the machine free before."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measurement import LinkCalibration
from emu.units import format_rate
from emu.verdict.case import Case, graded, percent
from emu.verdict.levels import Reason


def completeness(case: Case) -> Iterator[Reason]:
    """The lab ended without an error, and everything ran to its end."""
    measurement = case.measurement
    if measurement.error:
        yield Reason("INVALID", "lab", measurement.error, "completeness")
    if measurement.partial:
        yield Reason("INVALID", "run", "partial: it was stopped before its end", "completeness")
    if not measurement.repeats and not measurement.error:
        yield Reason("INVALID", "run", "nothing was measured", "completeness")
    for place, repeat in case.repeats():
        for failure in repeat.trace.failures:
            yield Reason("INVALID", failure.task, f"not finished: {failure.reason}", "completeness")
        if not repeat.trace.complete and not repeat.trace.failures and not measurement.partial:
            yield Reason("INVALID", place, "the workload did not come to its end", "completeness")


def findings(case: Case) -> Iterator[Reason]:
    """The lab's own checks found nothing: no foreign rule, no changed shaper, no shrunk buffer, no slow link."""
    for finding in case.measurement.findings:
        yield Reason("INVALID", finding.place, f"{finding.subject}: {finding.problem}", "findings")


def calibration(case: Case) -> Iterator[Reason]:
    """Every link has the rate that it was declared with, by its shaper and by measuring."""
    for link in case.measurement.calibration:
        yield from _shaper(case, link)
        if link.ratio is not None and link.measured is not None:
            text = (
                f"the link carries {format_rate(link.measured)} where {format_rate(link.declared)} were declared"
                f" ({percent(link.ratio)})"
            )
            yield from graded("rate_ratio", case.thresholds.rate_ratio, link.ratio, link.link, text)


def _shaper(case: Case, link: LinkCalibration) -> Iterator[Reason]:
    if link.configured is not None:
        error = abs(link.configured - link.declared) / link.declared
        text = f"the shaper says {format_rate(link.configured)} where {format_rate(link.declared)} were declared"
        yield from graded("shaper_error", case.thresholds.shaper_error, error, link.link, text)


def cross_check(case: Case) -> Iterator[Reason]:
    """iperf3 and emu's own traffic agree on what a pair of hosts reaches."""
    check = case.measurement.cross_check
    if check is not None:
        error = abs(check.own - check.iperf3) / check.iperf3 if check.iperf3 > 0 else float("inf")
        text = f"iperf3 reached {format_rate(check.iperf3)} and emu's own traffic {format_rate(check.own)}"
        yield from graded("cross_check", case.thresholds.cross_check, error, f"{check.src} -> {check.dst}", text)


def idle_before(case: Case) -> Iterator[Reason]:
    """Nobody else kept the processors busy when the lab was calibrated."""
    if case.measurement.facts is not None:
        idle = case.measurement.facts.idle_cpu_before
        text = f"processors were busy: {percent(idle)} idle before the lab was calibrated"
        yield from graded("idle_before", case.thresholds.idle_before, idle, "machine", text)
