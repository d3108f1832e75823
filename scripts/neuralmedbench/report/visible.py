"""Characters that could turn, hide or cut a line are shown by their names: text from models and raters may not move the page."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line ends, marks that change the direction of a line, halves of pairs, and tags that nobody sees."""


def visible(text: str) -> str:
    r"""Write characters that are not seen as their code points.

    Examples
    --------
    >>> visible("left\u202ethgir")
    'left⟨U+202E⟩thgir'
    """
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def shown(value: object) -> object:
    """Make what a template puts in visible; what was made by a template already is left as it is."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
