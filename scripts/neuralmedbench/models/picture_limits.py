"""Find requests whose pictures are beyond what their provider documents, before anything is sent."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.models.conversation import PromptMessage, load_messages
from neuralmedbench.models.token_estimates import file_size_px, png_size
from neuralmedbench.records.requests import RequestImage
from neuralmedbench.records.words import counted, listing

LIMITS = Path(__file__).with_name("picture_limits.yaml")
AS_TEXT = 4 / 3
"""Bytes of a picture in a data URL, of one of its own."""
LONG_CONTEXT = 200_000
"""Tokens of context above which a provider may take more pictures."""
SHOWN = 3
OPENAI = "openai"
"""Own servers are asked under this name, too: with an `api_base` its limits are not theirs."""


@dataclass(frozen=True, kw_only=True)
class PictureLimits:
    """What one provider documents; `source` and `read` say where and when. 0: not documented."""

    source: str
    read: datetime.date
    most_pictures: int = 0
    most_pictures_of_long_context: int = 0
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
    provider = _provider(model)
    own_server = model.api_base is not None and provider == OPENAI
    limits = None if model.backend != "litellm" or own_server else _limits().get(provider)
    if limits is None or (model.context_tokens or 0) <= LONG_CONTEXT:
        return limits
    return replace(limits, most_pictures=limits.most_pictures_of_long_context or limits.most_pictures)


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
    items: dict[tuple[str, str], list[str]] = {}
    for item, messages in asked:
        if problem := _problem(model, messages, root):
            items.setdefault(problem, []).append(item)
    limits = limits_of(model)
    return [
        f"{_provider(model)} refuses {counted(len(names), 'item')} ({listing(names, SHOWN)}): {why} ({limits.source}, {limits.read});"
        f" they are not asked; write {step} in its yaml"
        for (why, step), names in items.items()
        if limits
    ]


def refused_pictures(model: ModelConfig, messages: Sequence[PromptMessage], root: Path = Path()) -> str:
    """Return why a call is not made whose pictures its provider would refuse, in the same words for every such call; empty if it takes them."""
    problem = _problem(model, messages, root)
    # reasons are counted: the limit is the same for all, the number is not
    return f"pictures that {_provider(model)} refuses: {problem[0].partition(', ')[2]}; write {problem[1]} in its yaml" if problem else ""


def _problem(model: ModelConfig, messages: Sequence[PromptMessage], root: Path) -> tuple[str, str] | None:
    limits, images = limits_of(model), [image for message in messages for image in message.images]
    if limits is None or not images:
        return None
    problem = limits.problem([_sent_size(image, model, root) for image in images])
    if problem[0] and model.max_picture_px and all((root / image.path).is_file() for image in images):
        sent = [image.png for message in load_messages(messages, root, model.max_picture_px) for image in message.images]
        problem = limits.problem([(max(png_size(png)), len(png)) for png in sent])
    return problem if problem[0] else None


def _provider(model: ModelConfig) -> str:
    return model.id.partition("/")[0]


def _sent_size(image: RequestImage, model: ModelConfig, root: Path) -> tuple[int, int]:
    """Return the longest side and the bytes of a picture as it is sent; those of one that is scaled down are estimated by its area.

    0 for one that is not there: that is another cause.
    """
    path = root / image.path
    if not path.is_file():
        return 0, 0
    side, number = max(file_size_px(path)), path.stat().st_size
    factor = min(1.0, (model.max_picture_px or side) / side)
    return round(side * factor), round(number * factor**2)


def _mb(number: float) -> str:
    return f"{number / 1e6:.1f} MB"
