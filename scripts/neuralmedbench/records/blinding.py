"""Hide model names in answers, so that raters and graders do not know the model."""

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
"""Patterns of model families and their makers, as models name themselves."""


def hide_names(text: str, names: Iterable[str]) -> tuple[str, int]:
    """Hide the names of models in an answer.

    Parameters
    ----------
    text : str
        The answer.
    names : iterable of str
        Names, titles and ids of the run's models. Plain words without a digit or separator (`image`) are ignored: hiding them would change
        the content of the answer.

    Returns
    -------
    text : str
        The answer with `[model]` in their place.
    hidden : int
        Number of hidden names.

    Examples
    --------
    >>> hide_names("As GPT-4o I see Claude's syndrome.", [])
    ("As [model] I see Claude's syndrome.", 1)
    """
    return _pattern(tuple(sorted({name for name in names if re.search(r"\d|[^\W\d_][-_ ./:][^\W\d_]", name)}))).subn(HIDDEN, text)


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    of_run = sorted((re.escape(name) for name in names), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join((*of_run, *MAKERS))})(?![\w])", re.IGNORECASE)
