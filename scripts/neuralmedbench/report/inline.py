"""Putting figures into the page: ids of their own, and the ink of the page."""

from __future__ import annotations

import re

from neuralmedbench.figures.style import INK
from neuralmedbench.report.visible import visible

CSS_PX_PER_UNIT = 1.4
"""Figures are drawn in points; this is their largest size on the page."""


def inline_svg(text: str, name: str) -> str:
    """Prepare an SVG file for a page that holds several.

    Parameters
    ----------
    text : str
        An SVG file of `draw_figures`.
    name : str
        Prefix of every id, because an id may stand on a page once.

    Returns
    -------
    str
        The element; text and lines take the colour of the page's text, so that they follow the dark theme.
    """
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(
        r'aria-labelledby="([^"]+)"', lambda found: f'aria-labelledby="{" ".join(f"{name}-{part}" for part in found[1].split())}"', text
    )
    width = float(re.search(r'viewBox="0 0 ([0-9.]+)', text)[1])  # type: ignore[index]
    text = text.replace("<svg ", f'<svg width="{width * CSS_PX_PER_UNIT:.0f}" ', 1)
    return visible(text.replace(INK, "currentColor").strip())
