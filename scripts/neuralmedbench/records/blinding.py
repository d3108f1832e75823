"""Hiding the names by which an answer would give away who wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

HIDDEN = "[model]"
MAKERS = (
    r"open\s?ai",
    r"chat\s?gpt",
    r"gpt-?\d[\w.-]*",
    r"anthropic",
    # Claude syndrome is a stroke of the midbrain, and Claude and Loyez are a stain
    r"claude(?!(?:['’]?s)?\s+(?:syndrome|sign|and\s+loyez)\b)(?:[ -](?:opus|sonnet|haiku|[\d.]+))*",
    r"deep\s?mind",
    r"gemini(?:[ -](?:pro|flash|ultra|[\d.]+))*",
    r"(?:med)?gemma(?:-[\w.-]+)?",
    r"med-?palm\b",
    r"llama(?:-[\w.-]+)?",
    r"llava(?:-[\w.-]+)?",
    r"mi[sx]tral",
    r"pixtral",
    r"qwen[\w.-]*",
    r"deepseek[\w.-]*",
    r"internvl[\w.-]*",
    r"grok(?:-\d[\w.-]*)?",
    r"huatuo\w*",
    r"lingshu",
)
"""Families of models and who makes them, as they speak of themselves."""


def hide_names(text: str, names: Iterable[str]) -> tuple[str, int]:
    """Hide the names of models in an answer.

    Parameters
    ----------
    text : str
        The answer.
    names : iterable of str
        Names, titles and ids of the run's models. Those without a digit are passed over where they are a plain word (`image`): hiding that
        would change what the answer says.

    Returns
    -------
    text : str
        The answer with `[model]` in their place.
    hidden : int
        How many stood there.

    Examples
    --------
    >>> hide_names("As GPT-4o I see Claude's syndrome.", [])
    ("As [model] I see Claude's syndrome.", 1)
    """
    return _pattern(tuple(sorted({name for name in names if re.search(r"\d|[^\W\d_][-_ ./:][^\W\d_]", name)}))).subn(HIDDEN, text)


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    own = sorted((re.escape(name) for name in names), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join((*own, *MAKERS))})(?![\w])", re.IGNORECASE)
