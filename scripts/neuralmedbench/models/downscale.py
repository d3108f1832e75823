"""Pictures that a provider makes smaller before its model sees them."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.config.model import Downscale
from neuralmedbench.models.protocol import Message

SIZE_AT = 16
"""Where the header of a PNG holds width and height, four bytes each."""


def shrunk_pictures(messages: Iterable[Message], limit: Downscale | None) -> int:
    """Count the pictures of a conversation that lie above a provider's documented size.

    Parameters
    ----------
    messages : iterable of Message
        What is sent.
    limit : Downscale or None
        The documented limits in pixels; None when there are none.

    Returns
    -------
    int
        How many are wider or higher than `longest_side_px`, or have both sides above `shortest_side_px`.
    """
    if limit is None:
        return 0
    return sum(_is_shrunk(image.png, limit) for message in messages for image in message.images)


def _is_shrunk(png: bytes, limit: Downscale) -> bool:
    width, height = (int.from_bytes(png[place : place + 4], "big") for place in (SIZE_AT, SIZE_AT + 4))
    too_long = limit.longest_side_px is not None and max(width, height) > limit.longest_side_px
    return too_long or (limit.shortest_side_px is not None and min(width, height) > limit.shortest_side_px)
