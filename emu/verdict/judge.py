"""The judge: every rule looks at the case, and what they find makes the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from emu.measurement import Measurement
from emu.model.ideal import Prediction
from emu.verdict import circuit_rules, health_rules, lab_rules, link_rules, time_rules
from emu.verdict.case import Case
from emu.verdict.levels import LEVELS, Reason, Verdict
from emu.verdict.thresholds import THRESHOLDS, Thresholds

Rule = Callable[[Case], Iterator[Reason]]

STAGES: Final[tuple[tuple[Rule, ...], ...]] = (
    (lab_rules.idle_before, health_rules.processors),
    (lab_rules.completeness, lab_rules.findings, lab_rules.cross_check, health_rules.socket_buffers),
    (lab_rules.calibration, link_rules.paths, link_rules.switch_drops),
    (health_rules.retransmits, health_rules.connections, circuit_rules.circuit_changes, health_rules.charged_messages),
    (time_rules.completion,),
)
"""Causes before their effects: the machine, the lab, its links, what they carried, and how long it took.

The first reasons of a verdict are those to look at first. Within a stage INVALID ones come first.
"""


def judge(measurement: Measurement, prediction: Prediction, thresholds: Thresholds = THRESHOLDS) -> Verdict:
    """Whether a fabric's numbers can be trusted. Never raises for a measurement that could be read."""
    case = Case(measurement, prediction, thresholds)
    return Verdict.of(reason for stage in STAGES for reason in _worst_first(case, stage))


def _worst_first(case: Case, stage: Sequence[Rule]) -> list[Reason]:
    reasons = (reason for rule in stage for reason in rule(case))
    return sorted(reasons, key=lambda reason: -LEVELS.index(reason.level))
