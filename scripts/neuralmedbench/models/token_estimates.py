"""How many tokens a conversation has before it is sent: at most (for the reservation), likely (for a plan), perhaps, and at least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.conversation import PromptMessage, sent_size
from neuralmedbench.records.requests import RequestImage

MESSAGE_TOKENS = 16
"""Tokens of the chat template around a message or a label."""
SCHEMA_TOKENS = 512
"""Tokens that a provider adds around a schema (some send it as a tool)."""
PATCH_PX = 16
LEAST_PICTURE_TOKENS = 3400
MINI_PICTURE_TOKENS = 2833 + 8 * 5667
"""Base and 8 tiles at the rates of gpt-4o-mini, which counts picture tokens 33-fold so that a picture costs as much as with gpt-4o."""
LARGEST_PX = 2048
"""Assumed side of a picture whose size cannot be read."""
LIKELY_PICTURE_TOKENS = (258, 1600)
"""Least and most tokens of a picture in a plan."""
FEWEST_PICTURE_TOKENS = 64
"""Fewest tokens of a picture of any model known to us."""
PIXELS_PER_TOKEN = 750
ASCII_PER_TOKEN = 4
MOST_ASCII_PER_TOKEN, MOST_OTHERS_PER_TOKEN = 6, 4
"""Most characters of a token, on average over a text: of ASCII (English prose), and of other scripts (Russian with o200k: 2.9)."""
PERHAPS = 1.4
"""Factor by which a text may have more tokens than is likely."""


class Estimator:
    """Estimates the tokens of conversations for one model.

    Parameters
    ----------
    model : ModelConfig
        Its yaml.
    root : Path
        Folder to which the paths of pictures are relative.

    Notes
    -----
    Upper bound of text: one token per byte of UTF-8, because every tokeniser in use falls back to bytes. Bytes per token measured with
    cl100k: 1.01 (rare Chinese characters), 1.3 (random ASCII, emoji), 1.9 (Japanese), 2.5 (clinical shorthand), 5.2 (English).
    Upper bound of a picture: one token per patch of 16 px, at least 3,400. The published rules stay below it: OpenAI 85 + 170 per tile
    (1,445 at most) or 2.46 per patch of 32 px, Anthropic one per patch of 28 px or per 750 pixels, Google 258 per tile of 768 px or 2,240,
    Qwen one per patch of 28 px, LLaVA and InternVL up to 2,880 and 3,328 at any size. gpt-4o-mini is the exception.
    """

    def __init__(self, model: ModelConfig, root: Path = Path()) -> None:
        self._model, self._root = model, root
        self._sizes: dict[str, tuple[int, int]] = {}

    def prompt_at_most(self, messages: Sequence[PromptMessage], schema: str = "") -> int:
        """Return an upper bound of the tokens of a conversation."""
        text = sum(text_tokens_at_most(message.words) + MESSAGE_TOKENS for message in messages)
        pictures = [image for message in messages for image in message.images]
        labels = sum(text_tokens_at_most(image.label) + MESSAGE_TOKENS for image in pictures)
        form = text_tokens_at_most(schema) + SCHEMA_TOKENS if schema else 0
        return text + labels + form + sum(self._picture_at_most(image) for image in pictures)

    def prompt_probably(self, messages: Sequence[PromptMessage], schema: str = "") -> int:
        """Return the likely number of tokens of a conversation."""
        return sum(map(likely_text_tokens, _texts(messages, schema))) + self._likely_of_pictures(messages)

    def prompt_at_least(self, messages: Sequence[PromptMessage], schema: str = "") -> int:
        """Return a number of tokens that a conversation surely has."""
        of_picture = self._model.tokens_per_picture or FEWEST_PICTURE_TOKENS
        return sum(map(least_text_tokens, _texts(messages, schema))) + of_picture * sum(len(message.images) for message in messages)

    def prompt_perhaps(self, messages: Sequence[PromptMessage], schema: str = "") -> int:
        """Return a number of tokens that a conversation may well have: more text than is likely, the pictures as likely."""
        text = sum(map(likely_text_tokens, _texts(messages, schema)))
        return math.ceil(PERHAPS * text) + MESSAGE_TOKENS * len(messages) + self._likely_of_pictures(messages)

    def _likely_of_pictures(self, messages: Sequence[PromptMessage]) -> int:
        images = [image for message in messages for image in message.images]
        if self._model.tokens_per_picture:
            return self._model.tokens_per_picture * len(images)
        low, high = LIKELY_PICTURE_TOKENS
        return sum(min(high, max(low, w * h // PIXELS_PER_TOKEN)) for w, h in map(self._size, images))

    def _picture_at_most(self, image: RequestImage) -> int:
        if "4o-mini" in self._model.id:
            return MINI_PICTURE_TOKENS
        width, height = self._size(image)
        return max(LEAST_PICTURE_TOKENS, math.ceil(width / PATCH_PX) * math.ceil(height / PATCH_PX))

    def _size(self, image: RequestImage) -> tuple[int, int]:
        if image.sha256 not in self._sizes:
            size, limit = sent_size(file_size_px(self._root / image.path), self._model.max_picture_px), self._model.provider_downscale
            self._sizes[image.sha256] = limit.size_of(size) if limit else size
        return self._sizes[image.sha256]


def _texts(messages: Sequence[PromptMessage], schema: str) -> list[str]:
    return [*(message.words for message in messages), *(image.label for message in messages for image in message.images), schema]


def text_tokens_at_most(text: str) -> int:
    """Return an upper bound of the tokens of a text: its bytes of UTF-8.

    Examples
    --------
    >>> text_tokens_at_most("stroke"), text_tokens_at_most("脳梗塞")
    (6, 9)
    """
    return len(text.encode("utf-8", "surrogatepass"))


def likely_text_tokens(text: str) -> int:
    """Return the likely number of tokens of a text: one per four ASCII characters, one per character of another script.

    Examples
    --------
    >>> likely_text_tokens("A stroke on the left"), likely_text_tokens("脳梗塞")
    (5, 3)
    """
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain / ASCII_PER_TOKEN) + len(text) - plain


def least_text_tokens(text: str) -> int:
    """Return a number of tokens that a text surely has: one per six ASCII characters, one per four characters of another script.

    Examples
    --------
    >>> least_text_tokens("A stroke on the left"), least_text_tokens("脳梗塞")
    (3, 0)
    """
    plain = len(text.encode("ascii", "ignore"))
    return plain // MOST_ASCII_PER_TOKEN + (len(text) - plain) // MOST_OTHERS_PER_TOKEN


def png_size(png: bytes) -> tuple[int, int]:
    """Return width and height of a PNG from its first 24 bytes."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def file_size_px(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG file; those of the largest picture if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(24)
    except OSError:
        return LARGEST_PX, LARGEST_PX
    if len(head) < 24 or head[:4] != b"\x89PNG":
        return LARGEST_PX, LARGEST_PX
    width, height = png_size(head)
    return max(1, width), max(1, height)
