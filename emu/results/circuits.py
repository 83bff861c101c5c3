"""The rows on circuits: how long each change was dark, by four measures, and what each circuit carried."""

from __future__ import annotations

from typing import Any

from emu.measurement import CircuitChange, CircuitUse
from emu.wire import ETHERNET_HEADER, IP_TCP_HEADERS, TCP_TIMESTAMPS

_HEADERS = ETHERNET_HEADER + IP_TCP_HEADERS + TCP_TIMESTAMPS


def change_row(change: CircuitChange, tdf: float) -> dict[str, Any]:
    """One change of circuits; what was not measured is None, never what was asked."""
    gaps = [flow.gap for flow in change.service]
    lost = [plane.problem for plane in change.data_plane if plane.problem]
    return {
        "epoch": change.epoch,
        "asked_at_s": change.asked_at,
        "asked_dark_s": change.asked_dark,
        "asked_dark_wall_s": change.asked_dark * tdf,
        "dark_at_s": change.dark_at,
        "lit_at_s": change.lit_at,
        **_in_both("control_dark", change.control_dark if change.outcome == "committed" else None, tdf),
        **_in_both("data_plane_dark", change.data_plane_dark, tdf),
        "data_plane_resolution_wall_s": change.resolution_wall,
        "last_frame_wall_s": max((p.last_wall for p in change.data_plane if p.last_wall is not None), default=None),
        "first_frame_wall_s": max((p.first_wall for p in change.data_plane if p.first_wall is not None), default=None),
        **_in_both("service_dark", change.service_dark, tdf),
        "service_dark_max_s": max(gaps, default=None),
        "affected_flows": len(gaps),
        "transport_share_s": change.transport_share,
        "late_wall_s": change.late_wall,
        "mode": change.mode,
        "lost_packets": change.lost,
        "held_packets": change.held,
        "held_bytes_emulated": change.held_bytes,
        "held_overflow_packets": change.overflow,
        "reordered": change.reordered,
        "out_of_order_packets": change.out_of_order,
        "outcome": "; ".join([change.outcome, *lost]),
    }


def use_row(use: CircuitUse, sigma: float) -> dict[str, Any]:
    """One circuit in one epoch."""
    payload = max(0, use.bytes - _HEADERS * use.packets)
    return {
        "epoch": use.epoch,
        "ocs": use.ocs,
        "in_port": use.in_port,
        "out_port": use.out_port,
        "lit_s": use.lit,
        "duty": use.duty,
        "payload_bytes": round(payload * sigma),
        "frame_bytes_emulated": use.bytes,
        "packets": use.packets,
        "lost_packets": use.lost,
    }


def _in_both(name: str, seconds: float | None, tdf: float) -> dict[str, float | None]:
    """A duration in modelled seconds, and in the lab's."""
    return {f"{name}_s": seconds, f"{name}_wall_s": None if seconds is None else seconds * tdf}
