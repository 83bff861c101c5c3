"""The example is run as its user would run it, by a test; pytest does not take it for one of emu's own."""

collect_ignore = ["example_test.py"]
