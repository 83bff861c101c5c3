"""The plugins that the tests use; pytest takes them only from here, the top."""

pytest_plugins = ["pytester", "emu.pytest_plugin"]
"""The second is loaded by pytest itself where emu is installed."""
