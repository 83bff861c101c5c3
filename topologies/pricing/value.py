"""What performance costs: iteration times and bills of several fabrics, relative to one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topologies.pricing.bill import Bill

BASELINE = "fat-tree"


@dataclass(frozen=True, slots=True)
class Value:
    """One fabric beside the baseline, whose figures are all 1.

    seconds: of an iteration. dollars, watts: of the fabric.
    performance: baseline's time over this one's, all NICs having the rate that they have ("equal NIC rate").
    per_dollar, per_watt: 1 / (time * cost), over the baseline's; None without watts.
    equal_cost: the same ratio of times, but the baseline's links slowed down or sped up until it costs as much as this
        fabric; None if that was not run.
    wiring_assumed: as in the bill; whoever shows the figures must say so.
    """

    fabric: str
    seconds: float
    dollars: float
    watts: float | None
    performance: float
    per_dollar: float
    per_watt: float | None
    equal_cost: float | None
    wiring_assumed: str


def performance_per_dollar(
    times: Mapping[str, float],
    bills: Mapping[str, Bill],
    *,
    baseline: str | None = None,
    equal_cost: Mapping[str, float] | None = None,
) -> tuple[Value, ...]:
    """Each fabric's performance per dollar and per watt, normalised to the baseline, in the order of `times`.

    The metric is 1 / (iteration time * network cost), normalised to the fat-tree, as in MixNet (SIGCOMM 2025).

    times: seconds of an iteration by fabric. bills: of each of these.
    baseline: default: the one that is called fat-tree, else the first.
    equal_cost: by fabric, seconds of an iteration on the baseline at that fabric's cost (see `at_cost`), as TopoOpt
        (NSDI 2023) compares with a fat-tree of similar cost.

    Raises ValueError for a time that is not positive, and KeyError for a baseline or bill that is not there.
    """
    baseline = _baseline(times) if baseline is None else baseline
    for name, seconds in times.items():
        if not seconds > 0:
            raise ValueError(f"fabric {name}: an iteration takes more than {seconds} s")
    base = bills[baseline]
    return tuple(
        _value(name, seconds, bills[name], times[baseline] / seconds, base, (equal_cost or {}).get(name))
        for name, seconds in times.items()
    )


def relative_costs(bills: Sequence[Bill], *, baseline: str | None = None) -> tuple[float, ...]:
    """Each fabric's dollars a NIC over those of the baseline (default: as in `performance_per_dollar`), in order."""
    by_name = {bill.fabric: bill for bill in bills}
    base = by_name[_baseline(by_name) if baseline is None else baseline]
    return tuple(bill.dollars / bill.nics / (base.dollars / base.nics) for bill in bills)


def _baseline(names: Iterable[str]) -> str:
    known = list(names)
    return BASELINE if BASELINE in known else known[0]


def _value(name: str, seconds: float, bill: Bill, performance: float, base: Bill, equal: float | None) -> Value:
    return Value(
        fabric=name,
        seconds=seconds,
        dollars=bill.dollars,
        watts=bill.watts,
        performance=performance,
        per_dollar=performance * base.dollars / bill.dollars,
        per_watt=performance * base.watts / bill.watts if base.watts and bill.watts else None,
        equal_cost=None if equal is None else equal / seconds,
        wiring_assumed=bill.wiring_assumed,
    )
