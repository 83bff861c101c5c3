"""The judge: every rule looks at the case, and what they find makes the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.measurement import Measurement
from emu.model.ideal import Prediction
from emu.verdict import circuit_rules, health_rules, lab_rules, link_rules, time_rules
from emu.verdict.case import Case
from emu.verdict.levels import Reason, Verdict
from emu.verdict.thresholds import THRESHOLDS, Thresholds

RULES: Final[tuple[Callable[[Case], Iterator[Reason]], ...]] = (
    lab_rules.completeness,
    lab_rules.findings,
    lab_rules.calibration,
    lab_rules.cross_check,
    link_rules.paths,
    health_rules.processors,
    lab_rules.idle_before,
    health_rules.socket_buffers,
    link_rules.switch_drops,
    health_rules.retransmits,
    health_rules.connections,
    circuit_rules.circuit_changes,
    health_rules.charged_messages,
    time_rules.completion,
)
"""Causes before their effects: the first reasons of a verdict are those to look at first."""


def judge(measurement: Measurement, prediction: Prediction, thresholds: Thresholds = THRESHOLDS) -> Verdict:
    """Whether a fabric's numbers can be trusted. Never raises for a measurement that could be read."""
    case = Case(measurement, prediction, thresholds)
    return Verdict.of(reason for rule in RULES for reason in rule(case))
