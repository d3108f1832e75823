"""Answers that others collected."""

from __future__ import annotations

from dataclasses import dataclass

COLUMNS = ("item", "sample", "arm", "strategy", "text", "turns")
"""Columns of a table of given answers; all but `item` may be absent, and one of `text` and `turns` must be there."""


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """One answer of somebody else's run.

    Attributes
    ----------
    where : str
        Where it stands in its file.
    item : str
        Id of the item, with or without the benchmark's name before it.
    sample : int
        Which of the answers to this item, from 0.
    turns : tuple of str
        One text; of a dialogue the text of every turn.
    seconds : tuple of float
        How long each of them took; empty when nobody knows.
    """

    where: str
    item: str
    sample: int
    turns: tuple[str, ...]
    arm: str = "full"
    strategy: str = "direct"
    seconds: tuple[float, ...] = ()
