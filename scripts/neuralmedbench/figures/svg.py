"""Write a matplotlib figure as a self-contained SVG element."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from neuralmedbench.figures.style import MODEL_ID
from neuralmedbench.runtime.atomic_write import write_text

FONT = re.compile(r"^(?:(?P<weight>bold|[0-9]{3}) )?(?P<size>[0-9.]+)px (?P<family>.+)$")


def save_figure(path: Path, figure: Any, *, title: str, description: str) -> None:
    """Write a matplotlib figure as SVG, with title and description for screen readers; the figure is closed."""
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    # without date and creator, equal figures have equal bytes
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.06)
    plt.close(figure)
    write_text(path, plain_svg(buffer.getvalue(), title, description))


def plain_svg(text: str, title: str, description: str) -> str:
    """Turn matplotlib's SVG into a self-contained element: attributes instead of styles, title and description first.

    The content policy of the page allows no inline styles.
    """
    body = text[text.index("<svg") :]
    # metadata, style sheets, empty definitions and comments
    body = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<defs>\s*</defs>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' style="([^"]*)"', lambda match: _attributes(match[1]), body)
    body = re.sub(rf' id="{MODEL_ID}([^"]*)"', r' data-model="\1"', body)
    # a hundredth of a pixel is enough, and turning by nothing is not needed
    body = re.sub(r"(\.\d\d)\d{3,}", r"\1", re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", body))
    body = re.sub(r"\n\s*\n+", "\n", body)
    head = f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>'
    # the page sets the size; the view box stays
    opening = re.sub(r' (?:width|height)="[^"]*pt"', "", body[: body.index(">")])
    opening = f'{opening} role="img" aria-labelledby="title desc" stroke-linejoin="round" stroke-linecap="butt"'
    return f"{opening}>\n{head}{body[body.index('>') + 1 :].rstrip()}\n"


def _attributes(style: str) -> str:
    attributes: dict[str, str] = {}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        # matplotlib writes `font: bold 10px 'DejaVu Sans'`; the page has its own font family
        font = FONT.match(value) if name == "font" else None
        if font:
            attributes |= {"font-size": font["size"], "font-family": "sans-serif"}
            if font["weight"]:
                attributes["font-weight"] = font["weight"]
        elif name:
            attributes[name] = value
    return "".join(f' {name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in attributes.items())
