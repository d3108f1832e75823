"""SVG files that are equal byte for byte, readable aloud, and free of style attributes (so that a strict page may show them)."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from neuralmedbench.runtime.atomic_write import write_text

FONT = re.compile(r"^(?:(?P<weight>bold|[0-9]{3}) )?(?P<size>[0-9.]+)px (?P<family>.+)$")


def save_figure(path: Path, figure: Any, *, title: str, description: str) -> None:
    """Write a matplotlib figure as SVG.

    Parameters
    ----------
    path : Path
        The file.
    figure : matplotlib.figure.Figure
        The figure; it is closed.
    title, description : str
        What a screen reader says: the name of the figure, and what it shows.
    """
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.06)
    plt.close(figure)
    write_text(path, plain_svg(buffer.getvalue(), title, description))


def plain_svg(text: str, title: str, description: str) -> str:
    """Turn matplotlib's SVG into a self-contained element: attributes instead of styles, title and description first."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<defs>\s*</defs>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' style="([^"]*)"', lambda match: _attributes(match[1]), body)
    body = re.sub(r"\n\s*\n+", "\n", body)
    head = f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>'
    opening = re.sub(r' (?:width|height)="[^"]*pt"', "", body[: body.index(">")])
    opening = f'{opening} role="img" aria-labelledby="title desc" stroke-linejoin="round" stroke-linecap="butt"'
    return f"{opening}>\n{head}{body[body.index('>') + 1 :].rstrip()}\n"


def _attributes(style: str) -> str:
    found: dict[str, str] = {}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        font = FONT.match(value) if name == "font" else None
        if font:
            found |= {"font-size": font["size"], "font-family": "sans-serif"}
            if font["weight"]:
                found["font-weight"] = font["weight"]
        elif name:
            found[name] = value
    return "".join(f' {name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in found.items())
