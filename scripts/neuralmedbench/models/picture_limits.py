"""Find requests whose pictures are beyond what their provider documents, before anything is sent."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.token_estimates import file_size_px
from neuralmedbench.records.requests import RequestImage
from neuralmedbench.records.words import counted, listing

LIMITS = Path(__file__).with_name("picture_limits.yaml")
AS_TEXT = 4 / 3
"""Bytes of a picture in a data URL, of one of its own."""
SHOWN = 3
OPENAI = "openai"
"""Own servers are asked under this name, too: with an `api_base` its limits are not theirs."""


@dataclass(frozen=True, kw_only=True)
class PictureLimits:
    """What one provider documents; `source` and `read` say where and when. 0: not documented."""

    source: str
    read: datetime.date
    most_pictures: int = 0
    longest_side_px: int = 0
    many_pictures: int = 0
    longest_side_of_many_px: int = 0
    picture_bytes: int = 0
    request_bytes: int = 0

    def problem(self, sizes: Sequence[tuple[int, int]]) -> tuple[str, str]:
        """Return what of the pictures of a request is beyond a limit, and what to write in the model's yaml; empty if nothing is.

        Parameters
        ----------
        sizes : sequence of (int, int)
            Longest side in pixels and bytes of each picture as sent.
        """
        sides, numbers = [side for side, _ in sizes], [number for _, number in sizes]
        many = bool(self.many_pictures) and len(sizes) > self.many_pictures
        side = self.longest_side_of_many_px if many else self.longest_side_px
        if self.most_pictures and len(sizes) > self.most_pictures:
            return f"{len(sizes)} pictures, at most {self.most_pictures}", f"max_images: {self.most_pictures}"
        if side and max(sides) > side:
            of_many = f" from {self.many_pictures + 1} pictures on" if many else ""
            fewer = f", or max_images: {self.many_pictures}" if many else ""
            return f"a picture of {max(sides)} px, at most {side} px a side{of_many}", f"max_picture_px: {side}{fewer}"
        if self.picture_bytes and max(numbers) * AS_TEXT > self.picture_bytes:
            return f"a picture of {_mb(max(numbers) * AS_TEXT)}, at most {_mb(self.picture_bytes)}", "a smaller max_picture_px"
        if self.request_bytes and sum(numbers) * AS_TEXT > self.request_bytes:
            return f"pictures of {_mb(sum(numbers) * AS_TEXT)}, at most {_mb(self.request_bytes)}", "a smaller max_picture_px or max_images"
        return "", ""


def limits_of(model: ModelConfig) -> PictureLimits | None:
    """Return the limits of the provider of a model; None if none are known, or it is a server of one's own."""
    provider = model.id.partition("/")[0]
    own_server = model.api_base is not None and provider == OPENAI
    return None if model.backend != "litellm" or own_server else _limits().get(provider)


@cache
def _limits() -> dict[str, PictureLimits]:
    return TypeAdapter(dict[str, PictureLimits]).validate_python(load_yaml(LIMITS.read_text(encoding="utf-8")))


def beyond_limits(model: ModelConfig, asked: Iterable[tuple[str, Sequence[PromptMessage]]], root: Path = Path()) -> list[str]:
    """Say which items have pictures beyond a limit of their provider, by limit, with what to write; nothing if all are within.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml.
    asked : iterable of (str, sequence of PromptMessage)
        Items with what is sent for them.
    root : Path
        Folder to which the paths of pictures are relative.
    """
    limits = limits_of(model)
    if limits is None:
        return []
    items: dict[tuple[str, str], list[str]] = {}
    for item, messages in asked:
        sizes = [_sent_size(image, model, root) for message in messages for image in message.images]
        problem = limits.problem(sizes) if sizes else ("", "")
        if problem[0]:
            items.setdefault(problem, []).append(item)
    return [
        f"{model.id.partition('/')[0]} refuses {counted(len(names), 'item')} ({listing(names, SHOWN)}): {why} ({limits.source}, {limits.read});"
        f" write {step} in its yaml"
        for (why, step), names in items.items()
    ]


def _sent_size(image: RequestImage, model: ModelConfig, root: Path) -> tuple[int, int]:
    """Return the longest side and the bytes of a picture as it is sent; those of one that is scaled down are estimated by its area."""
    path = root / image.path
    side, number = max(file_size_px(path)), path.stat().st_size if path.is_file() else 0
    factor = min(1.0, (model.max_picture_px or side) / side)
    return round(side * factor), round(number * factor**2)


def _mb(number: float) -> str:
    return f"{number / 1e6:.1f} MB"
