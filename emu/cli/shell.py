"""`emu shell`: Mininet's prompt inside a lab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emu.cli.options import Debug, Plugins, ScenarioFile
from emu.cli.output import messages, plugins_kept_apart

if TYPE_CHECKING:
    from emu.scenario import BuiltFabric, Scenario

FabricName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which of the scenario's fabrics; default: the first.", show_default=False),
]


def shell(scenario: ScenarioFile, fabric: FabricName = None, plugin: Plugins = None, debug: Debug = False) -> int:
    """Work in a lab at Mininet's prompt. Needs root.

    The fabric is built and shaped as for a run. Every command of Mininet's works on its hosts, and circuits, light,
    dark, epoch, links, routes and counters show and change what else there is; help explains them. Commands may also
    come from a file or pipe; then the status is 2 if one of them could not be used.

    \b
    Example:
      sudo emu shell scenarios/quickstart.yaml --fabric hybrid
      mininet> h0 ping -c 3 h5
      mininet> circuits o0 t0-t1 t2-t3
      mininet> pingall

    Exit status: 0, 1 if the lab could not be opened or broke, 2 bad input.
    """
    from emu.cli.progress import display  # noqa: PLC0415
    from emu.lab.job import Job  # noqa: PLC0415
    from emu.lab.rooms import HostRoom, Terminal  # noqa: PLC0415
    from emu.plan import plan  # noqa: PLC0415

    with plugins_kept_apart():
        loaded, built = _load(scenario, plugin or [])
        place = _place(loaded, fabric)
        room = HostRoom()
        room.check(Path.cwd())
        asked = loaded.emulation.scale
        scale = plan(loaded, built, [], loaded.seed).scale if asked == "auto" else asked
    job = Job(
        stage="shell",
        scenario=loaded.to_json(),
        fabric=place,
        plugins=tuple(str(file.resolve()) for file in plugin or []),
        sigma=scale.sigma,
        beta=scale.beta,
        room=room.name,
    )
    with display(messages(), live=False) as listener:
        return room.talk(job, Terminal(), listener)


def _load(path: Path, plugins: list[Path]) -> tuple[Scenario, tuple[BuiltFabric, ...]]:
    from emu.lab.delays import check_delays  # noqa: PLC0415
    from emu.scenario import build_fabrics, load  # noqa: PLC0415

    loaded = load(path, plugins=plugins)
    built = build_fabrics(loaded)
    check_delays(loaded, built)
    return loaded, built


def _place(scenario: Scenario, name: str | None) -> int:
    """The position of the fabric that is meant. Raises InputError for a name that no fabric has."""
    from emu.errors import InputError  # noqa: PLC0415
    from emu.scenario.fields import nearest  # noqa: PLC0415

    names = [fabric.name for fabric in scenario.fabrics]
    if name is None:
        return 0
    if name not in names:
        raise InputError(f"--fabric: the scenario has no fabric {name!r}", hint=nearest(name, names))
    return names.index(name)
