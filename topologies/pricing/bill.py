"""The bill of a fabric: its parts, what they cost and what they draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from topologies.fabric import Fabric
from topologies.pricing.parts import Part, count_parts
from topologies.pricing.table import PriceError, PriceTable, Quantity, words


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a bill: so many of a part. dollars, watts: of one of them, None if the table has no such part."""

    part: Part
    count: int
    dollars: float | None
    watts: float | None


@dataclass(frozen=True, slots=True)
class Bill:
    """What a fabric is made of, costs and draws.

    fabric: its name. nics: how many (the ports that hosts have into the fabric).
    prices, power: the names of the tables that dollars and watts are from.
    dollars: in all. watts: in all, None if the table does not say.
    wiring_assumed: where it is written what the wiring assumes, if its paper does not give it; else "". Whoever shows
        a figure of such a bill must say so.
    notes: what is left out and why.
    """

    fabric: str
    nics: int
    prices: str
    power: str
    items: tuple[Item, ...]
    dollars: float
    watts: float | None
    wiring_assumed: str = ""
    notes: tuple[str, ...] = ()


def price(fabric: Fabric, table: PriceTable, power: PriceTable | None = None) -> Bill:
    """The bill of a fabric. `power`: the table that watts are from; default: the same.

    Parts of a kind that a table does not have at all are left out of the sum, and a note says so. Raises PriceError if
    dollars are lacking for a rate only; where watts are, the bill has none, and a note says why.
    """
    power = table if power is None else power
    parts = count_parts(fabric)
    dollars = {part: table.of("dollars", part) for part in parts}
    watts, reason = _watts(parts, power)
    items = tuple(Item(part, count, dollars[part], watts.get(part)) for part, count in parts.items())
    notes = [*_left_out("dollars", dollars, table), *([reason] if reason else _left_out("watts", watts, power))]
    return Bill(
        fabric=fabric.name,
        nics=sum(item.count for item in items if item.part.kind == "nic"),
        prices=table.name,
        power=power.name,
        items=items,
        dollars=_total((item.count, item.dollars) for item in items),
        watts=None if reason else _total((item.count, item.watts) for item in items),
        wiring_assumed=fabric.wiring_assumed,
        notes=(*notes, *fabric.notes),
    )


def _watts(parts: Iterable[Part], table: PriceTable) -> tuple[dict[Part, float | None], str]:
    """Watts of each part, or the reason why there can be none."""
    if not table.watts:
        return {}, f"no power: table {table.name} has no watts"
    try:
        return {part: table.of("watts", part) for part in parts}, ""
    except PriceError as error:
        return {}, f"no power: {error}"


def _left_out(quantity: Quantity, values: dict[Part, float | None], table: PriceTable) -> Sequence[str]:
    kinds = list(dict.fromkeys(words(part.kind) for part, value in values.items() if value is None))
    return [f"{quantity} without {' and '.join(kinds)}, which table {table.name} does not have"] if kinds else []


def _total(values: Iterable[tuple[int, float | None]]) -> float:
    return sum(count * each for count, each in values if each is not None)
