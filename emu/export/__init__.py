"""Exports: a run directory in the formats that other tools of the field read.

Each format has a module of its own; `emu.export.formats` lists them and `emu.export.selection` picks what of a run is
exported. All numbers are those of the modelled system unless a format's page in `docs/exports.md` says otherwise.
"""
