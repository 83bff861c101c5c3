"""`emu price`: what a scenario's fabrics are made of, cost and draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.cli.exits import Exit
from emu.cli.lines import show_line
from emu.cli.options import Debug, Json, Plugins, ScenarioFile
from emu.cli.output import plugins_kept_apart, results, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from topologies.pricing import Bill, PriceTable

PriceTableName = Annotated[
    str, typer.Option("--table", metavar="NAME|FILE", help="Prices: mixnet, opus, or the path of your own .toml file.")
]
PowerTableName = Annotated[
    str, typer.Option("--power", metavar="NAME|FILE", help="Watts, from a table of the same form.")
]


def price(
    scenario: ScenarioFile,
    table: PriceTableName = "mixnet",
    power: PowerTableName = "opus",
    json: Json = False,
    plugin: Plugins = None,
    debug: Debug = False,
) -> int:
    """Print the bill of materials of a scenario's fabrics: parts, dollars, watts. Builds nothing, needs no root.

    \b
    Example:
      emu price scenarios/quickstart.yaml
      emu price scenarios/quickstart.yaml --table prices.toml --json

    Parts are counted from the wiring: every wired port, and a transceiver at each electrical end of a cable. Rates are
    those of the scenario, not those of a lab.

    Exit status: 0, or 2 for bad input and parts that a table has no price for.
    """
    from emu.price import bills_of, load_price_table  # noqa: PLC0415
    from emu.scenario import build_fabrics, load  # noqa: PLC0415

    tables = load_price_table(table), load_price_table(power)
    with plugins_kept_apart():
        fabrics = build_fabrics(load(scenario, plugins=plugin or ()))
    bills = bills_of([built.fabric for built in fabrics], *tables)
    if json:
        write_json(as_data(scenario, bills, *tables))
    else:
        show_bills(results(), bills, *tables)
    return Exit.VALID


def show_bills(console: Console, bills: Sequence[Bill], prices: PriceTable, power: PriceTable) -> None:
    """Print each bill, how they compare, and where the figures are from."""
    for bill in bills:
        console.print(_bill(bill))
        for note in bill.notes:
            show_line(console, f"note: {note}", "dim", indent=2)
        console.print()
    if len(bills) > 1:
        console.print(_comparison(bills))
        console.print()
    show_line(console, f"Dollars: {prices.title}, from {prices.source}.", "dim")
    if any(bill.watts is not None for bill in bills):
        show_line(console, f"Watts: {power.title}, from {power.source}.", "dim")


def as_data(scenario: Path, bills: Sequence[Bill], prices: PriceTable, power: PriceTable) -> dict[str, Any]:
    """The same for programs."""
    return {
        "scenario": str(scenario),
        "prices": {"name": prices.name, "source": prices.source, "notes": prices.notes},
        "power": {"name": power.name, "source": power.source, "notes": power.notes},
        "fabrics": [_data(bill) for bill in bills],
    }


def _data(bill: Bill) -> dict[str, Any]:
    return {
        "name": bill.fabric,
        "nics": bill.nics,
        "dollars": bill.dollars,
        "dollars_per_nic": bill.dollars / bill.nics,
        "watts": bill.watts,
        "wiring_assumed": bill.wiring_assumed or None,
        "notes": bill.notes,
        "items": [
            {
                "part": item.part.kind,
                "rate_bps": item.part.rate,
                "count": item.count,
                "dollars_each": item.dollars,
                "watts_each": item.watts,
            }
            for item in bill.items
        ],
    }


def _bill(bill: Bill) -> Table:
    from topologies.pricing.table import words  # noqa: PLC0415

    table = _table(bill.fabric, ("rate", "count", "$ each", "$", "W"))
    for item in bill.items:
        total = None if item.dollars is None else item.count * item.dollars
        watts = None if item.watts is None else item.count * item.watts
        each = "-" if item.dollars is None else f"{item.dollars:,.10g}" if item.dollars < 1 else f"{item.dollars:,.0f}"
        rate = f"{item.part.rate / 1e9:g}G"
        table.add_row(words(item.part.kind), rate, f"{item.count:,}", each, _number(total), _number(watts))
    table.add_section()
    total_name = "total, wiring assumed" if bill.wiring_assumed else "total"
    table.add_row(total_name, "", "", "", _number(bill.dollars), _number(bill.watts))
    return table


def _comparison(bills: Sequence[Bill]) -> Table:
    from topologies.pricing import relative_costs  # noqa: PLC0415

    table = _table("fabric", ("NICs", "$", "$ a NIC", "W a NIC", "cost"))
    for bill, relative in zip(bills, relative_costs(bills), strict=True):
        name = f"{bill.fabric} (wiring assumed)" if bill.wiring_assumed else bill.fabric
        watts = None if bill.watts is None else bill.watts / bill.nics
        each = _number(bill.dollars / bill.nics)
        table.add_row(name, f"{bill.nics:,}", _number(bill.dollars), each, _number(watts), f"{relative:.2f}")
    return table


def _table(first: str, headers: Sequence[str]) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column(first, overflow="fold")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
