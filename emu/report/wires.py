"""Links and circuits: how busy they were, what they lost, and how long circuits were lit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from emu.report import words
from emu.report.collectives import Cell
from emu.report.series import Series, numbers, texts
from emu.report.shapes import Json, shorts
from emu.results.wiring import StoredFabric
from emu.units import format_rate
from topologies.fabric import Kind, Port

MOST_LINKS: Final = 12
"""Busiest links of each fabric in the table."""
MOST_CIRCUITS: Final = 200
MOST_POINTS: Final = 800
"""Links of one fabric that are drawn one by one; of more, quantiles are."""
_NAMES: Final = {Kind.HOST: "host", Kind.TOR: "ToR", Kind.EPS: "EPS", Kind.OCS: "OCS"}


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One direction of a link, mean over the repeats."""

    place: int
    fabric: str
    link: str
    rate: Cell
    carried: Cell
    expected: Cell
    share: float
    utilisation: Cell
    drops: Cell


@dataclass(frozen=True, slots=True)
class CircuitRow:
    """One circuit in one epoch of one repeat."""

    place: int
    fabric: str
    repeat: int
    epoch: int
    circuit: str
    lit: Cell
    duty: Cell
    share: float
    carried: Cell
    load: Cell
    lost: Cell


def link_rows(series: Sequence[Series]) -> list[LinkRow]:
    """The busiest links of each fabric."""
    return [row for one in series for row in _links(one)]


def _links(one: Series) -> Iterator[LinkRow]:
    columns = ["rate_bps", "payload_bytes", "expected_bytes", "utilisation", "queue_drops", "switch_drops"]
    means = one.links.groupby(["link", "peer"], sort=False)[columns].mean()
    for _, row in means.nlargest(MOST_LINKS, "utilisation").reset_index().iterrows():
        busy, lost = float(row["utilisation"]), float(row["queue_drops"] + row["switch_drops"])
        yield LinkRow(
            place=one.place,
            fabric=one.label,
            link=f"{row['link']} → {row['peer']}",
            rate=Cell(format_rate(float(row["rate_bps"])), float(row["rate_bps"])),
            carried=Cell(words.size(float(row["payload_bytes"])), float(row["payload_bytes"])),
            expected=Cell(words.size(float(row["expected_bytes"])), float(row["expected_bytes"])),
            share=min(busy, 1.0),
            utilisation=Cell(words.percent(busy), busy),
            drops=Cell(words.NONE if one.predicted else words.count(lost), lost),
        )


def link_spread(series: Sequence[Series], wirings: Mapping[int, StoredFabric | None]) -> list[Json]:
    """Utilisation of every link, by which layers it joins; quantiles where there are very many."""
    out = []
    for one in series:
        kinds = _kinds(wirings[one.place])
        means = one.links.groupby(["link", "peer"], sort=False)["utilisation"].mean().dropna().reset_index()
        layers: dict[str, list[tuple[str, float]]] = {}
        for link, peer, busy in zip(
            texts(means, "link"), texts(means, "peer"), numbers(means, "utilisation").tolist(), strict=True
        ):
            ends = [kinds.get(name.rpartition(":")[0], "switch") for name in (link, peer)]
            layers.setdefault(" → ".join(ends), []).append((f"{link} → {peer}", busy))
        out += [_spread(one, layer, found, len(means)) for layer, found in layers.items()]
    return out


def _spread(one: Series, layer: str, found: list[tuple[str, float]], links: int) -> Json:
    values = np.array([busy for _, busy in found])
    single = links <= MOST_POINTS
    shown = values if single else np.quantile(values, np.linspace(0, 1, 41))
    return {
        "series": one.place,
        "layer": layer,
        "count": len(found),
        "busy": shorts(shown, 4),
        "names": [name for name, _ in found] if single else [],
    }


def _kinds(stored: StoredFabric | None) -> dict[str, str]:
    return {} if stored is None else {node.name: _NAMES[node.kind] for node in stored.nodes}


# -- circuits --------------------------------------------------------------------------------------------------------


def circuit_rows(series: Sequence[Series], wirings: Mapping[int, StoredFabric | None]) -> tuple[list[CircuitRow], int]:
    """What each circuit carried in each epoch, and how many more rows there are."""
    rows = [row for one in series for row in _circuits(one, wirings[one.place])]
    return rows[:MOST_CIRCUITS], max(0, len(rows) - MOST_CIRCUITS)


def _circuits(one: Series, stored: StoredFabric | None) -> Iterator[CircuitRow]:
    far = {} if stored is None else _far(stored)
    for row in one.circuit_use.head(MOST_CIRCUITS + 1).to_dict("records"):
        yield _circuit(one, row, far)


def _circuit(one: Series, row: Mapping[Hashable, object], far: Mapping[Port, tuple[str, int]]) -> CircuitRow:
    ocs, lit, duty = str(row["ocs"]), _number(row["lit_s"]), _number(row["duty"])
    ends = [None if _blank(row[name]) else Port(ocs, int(_number(row[name]))) for name in ("in_port", "out_port")]
    names = [_end(port, far) for port in ends]
    rate = min((far[port][1] for port in ends if port is not None and port in far), default=0)
    moved = _number(row["payload_bytes"])
    load = 8 * moved / (rate * lit) if rate and lit > 0 else float("nan")
    return CircuitRow(
        place=one.place,
        fabric=one.label,
        repeat=int(_number(row["repeat"])),
        epoch=int(_number(row["epoch"])),
        circuit=f"{names[0]} → {names[1]}",
        lit=Cell(words.duration(lit), lit),
        duty=Cell(words.percent(duty), duty),
        share=min(max(duty, 0.0), 1.0),
        carried=Cell(words.size(moved), moved),
        load=Cell(words.percent(load), load if np.isfinite(load) else -1.0),
        lost=Cell(words.count(_number(row["lost_packets"])), _number(row["lost_packets"])),
    )


def _far(stored: StoredFabric) -> dict[Port, tuple[str, int]]:
    """By port, the node at the other end of its cable, and the cable's rate."""
    return {
        port: (other.node, link.rate) for link in stored.links for port, other in ((link.a, link.b), (link.b, link.a))
    }


def _end(port: Port | None, far: Mapping[Port, tuple[str, int]]) -> str:
    if port is None:
        return "no circuit"
    return f"{far[port][0]} ({port})" if port in far else str(port)


def _blank(value: object) -> bool:
    import pandas as pd  # noqa: PLC0415 - loaded with the tables already

    return value is None or value is pd.NA


def _number(value: object) -> float:
    return float("nan") if _blank(value) else float(str(value))
