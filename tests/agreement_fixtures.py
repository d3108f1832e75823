"""Made-up ratings for the tests of agreement and adjudication."""

from __future__ import annotations

from typing import Any

from neuralmedbench.ratings.exports import PacketKey
from neuralmedbench.records.scores import Rating

AXIS = "dx_correct"


def rating(answer: int, rater: str, value: float | None, axis: str = AXIS, **changes: Any) -> Rating:
    base = {
        "round_id": "r01", "rater_id": rater, "item_id": f"demo/case{answer:02d}", "arm": "full", "strategy": "direct", "model": "alpha",
        "revision": "1", "repeat": 0, "text_sha256": f"{answer:064d}", "axis": axis, "value": value, "seconds": 40.0, "stale": False,
        "simulated": False, "probability": 0.5,
    }  # fmt: skip
    return Rating(**{**base, **changes})


def filled(packet: PacketKey, rubric: str, values: dict[str, int], **changes: Any) -> dict[str, Any]:
    """Fill a packet in: the same values everywhere."""
    items = [
        {"item_id": item_id, "position": place, "status": "rated", "scores": values, "seconds_active": 60.0}
        for place, item_id in enumerate(packet.order, start=1)
    ]  # fmt: skip
    whole = {
        "schema": "neuralmedbench.rating/1", "packet_id": packet.packet_id, "packet_sha256": packet.packet_sha256, "rubric": rubric,
        "rater": {"id": packet.rater}, "started": "2026-01-01T10:00:00Z", "exported": "2026-01-01T12:00:00Z", "complete": True, "items": items,
    }  # fmt: skip
    return whole | changes
