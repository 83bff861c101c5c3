"""Price tables and bills, what is wrong with them said as an error of the user's input."""

from __future__ import annotations

from collections.abc import Sequence

from emu.errors import InputError
from topologies import pricing
from topologies.fabric import Fabric
from topologies.pricing import Bill, PriceError, PriceTable


def load_price_table(name: str) -> PriceTable:
    """The price table of that name (mixnet, opus), or of that file. Raises InputError with file, line and key."""
    try:
        return pricing.load_table(name)
    except PriceError as error:
        raise _input_error(error) from error


def bills_of(fabrics: Sequence[Fabric], table: PriceTable, power: PriceTable | None = None) -> tuple[Bill, ...]:
    """The bill of each fabric; see `topologies.pricing.price`.

    power: the table that watts are from; default: the same. Raises InputError, with the fabric and what to do, if the
    table has no price for a rate that a fabric uses.
    """
    bills = []
    for fabric in fabrics:
        try:
            bills.append(pricing.price(fabric, table, power))
        except PriceError as error:
            hint = "change the fabric's rates, or give a price table that has them (--table FILE.toml)"
            raise InputError(f"fabric {fabric.name}: {error.problem}", hint=hint) from error
    return tuple(bills)


def similar_cost(baseline: Fabric, bills: Sequence[Bill], table: PriceTable) -> dict[str, Fabric]:
    """By the name of each bill's fabric: the baseline at the link rates at which it costs as much.

    Those for which the table's rates do not go far enough are left out. Run the same workload on each of these for the
    column "at equal cost" (`equal_cost` of `performance_per_dollar`).
    """
    found = {bill.fabric: pricing.at_cost(baseline, table, bill.dollars) for bill in bills}
    return {name: fabric for name, fabric in found.items() if fabric is not None}


def _input_error(error: PriceError) -> InputError:
    return InputError(error.problem, file=error.file, line=error.line, key=error.key)
