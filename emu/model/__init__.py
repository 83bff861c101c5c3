"""The flow-level engine: transfers as fluids that share links max-min fairly, over the routes that the lab uses."""
