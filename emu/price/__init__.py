"""Prices for commands and reports: tables and bills, with errors that a user can act on.

table, power = load_price_table("mixnet"), load_price_table("opus")
bills = bills_of([built.fabric for built in build_fabrics(scenario)], table, power)
values = performance_per_dollar(times, {bill.fabric: bill for bill in bills})
"""

from emu.price.bills import bills_of, load_price_table, similar_cost
from topologies.pricing import Bill, PriceTable, Value, performance_per_dollar

__all__ = ["Bill", "PriceTable", "Value", "bills_of", "load_price_table", "performance_per_dollar", "similar_cost"]
