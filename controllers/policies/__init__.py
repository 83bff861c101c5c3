"""Which light when: policies that decide circuits. They know no OpenFlow, no engine and no clock of their own."""

BUILT_IN = ("static", "scheduled", "one-shot", "templates")
"""As scenarios name them."""
