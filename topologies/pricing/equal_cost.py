"""The same wiring for other money: at which link rates a fabric costs so much."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.optimize import brentq

from topologies.fabric import Fabric
from topologies.pricing.parts import Part, count_parts
from topologies.pricing.table import PriceTable


def at_cost(fabric: Fabric, table: PriceTable, dollars: float) -> Fabric | None:
    """The same fabric with all rates multiplied by one factor such that it costs `dollars`.

    So TopoOpt (NSDI 2023) makes a fat-tree of similar cost. Between the rates of the table prices are taken to be on a
    straight line; a fabric that the table cannot make as cheap or as dear is answered by None. If several factors cost
    the same, it is one of them.
    """
    parts = count_parts(fabric)
    low, high = _range(parts, table)
    if low > high:
        return None
    first, last = _cost(parts, table, low), _cost(parts, table, high)
    if not first <= dollars <= last:
        return None
    factor = low if first == last else brentq(lambda f: _cost(parts, table, f) - dollars, low, high, rtol=1e-9)
    return fabric.with_rates(factor)


def _range(parts: Mapping[Part, int], table: PriceTable) -> tuple[float, float]:
    """The smallest and largest factor for which the table has prices for all parts that it has at all."""
    low, high = 0.0, float("inf")
    for part in parts:
        rates = [rate for rate in table.dollars.get(part.kind, {}) if rate is not None]
        if rates:
            low, high = max(low, min(rates) / part.rate), min(high, max(rates) / part.rate)
    return (low, high) if high < float("inf") else (1.0, 1.0)


def _cost(parts: Mapping[Part, int], table: PriceTable, factor: float) -> float:
    scaled = ((Part(part.kind, round(part.rate * factor)), count) for part, count in parts.items())
    return sum(count * (table.between("dollars", part) or 0.0) for part, count in scaled)
