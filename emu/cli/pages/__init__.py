"""The generated parts of the documentation, and what writes them: `python -m emu.cli.pages docs`.

A page keeps its prose; what stands between `<!-- generated: name -->` and `<!-- end -->` comes from the code. A page
for each command, fabric, policy and workload must exist: one that is missing is begun with a title and its part.
"""

from emu.cli.pages.results import SCHEMA_FILE, schema_text
from emu.cli.pages.site import out_of_date, regenerate, write

__all__ = ["SCHEMA_FILE", "out_of_date", "regenerate", "schema_text", "write"]
