"""What a fabric costs and draws, counted from its graph: parts, price tables, bills, performance per dollar and watt.

table = load_table("mixnet")
bill = price(fabric, table)
bill.dollars
"""

from topologies.pricing.bill import Bill, Item, price
from topologies.pricing.closed_forms import mixnet
from topologies.pricing.equal_cost import at_cost
from topologies.pricing.parts import Part, count_parts
from topologies.pricing.table import PriceError, PriceTable, load_table, table_names
from topologies.pricing.value import Value, performance_per_dollar, relative_costs

__all__ = [
    "Bill",
    "Item",
    "Part",
    "PriceError",
    "PriceTable",
    "Value",
    "at_cost",
    "count_parts",
    "load_table",
    "mixnet",
    "performance_per_dollar",
    "price",
    "relative_costs",
    "table_names",
]
