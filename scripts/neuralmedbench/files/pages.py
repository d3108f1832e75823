"""Parts of the HTML pages for people, except the report: one offline file each, for light and dark mode, usable by keyboard."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from io import BytesIO
from pathlib import Path

THUMBNAIL_PX = 128
STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--line:#b5b5b5;--soft:#f1f1ef;--warn:#8a3b00;--mark:#fff0b3}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e6;--paper:#16181a;--line:#4a4d50;--soft:#232629;--warn:#ffb27a;--mark:#5c4a00}}
body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:74rem;padding:0 1rem;color:var(--ink);background:var(--paper)}
h1{font-size:1.5rem}h2{font-size:1.15rem;border-top:1px solid var(--line);padding-top:.9rem;margin-top:1.6rem}
a{color:inherit}a:focus-visible,input:focus-visible,summary:focus-visible,pre:focus-visible{outline:3px solid currentColor;outline-offset:2px}
nav a{margin-right:1.2rem}label{display:block;padding:.35rem .5rem;background:var(--soft);border-left:4px solid var(--line)}
input{margin-right:.6rem;transform:scale(1.2)}
figure{display:inline-block;vertical-align:top;margin:.4rem .8rem .4rem 0;max-width:100%}figcaption{font-size:.85rem}
img{background:#000;max-width:100%;height:auto;display:block}
ul{columns:18rem;margin:.2rem 0 .6rem;padding-left:1.2rem;overflow-wrap:anywhere}
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}
pre{white-space:pre-wrap;background:var(--soft);padding:.6rem;max-height:26rem;overflow:auto}
code{background:var(--soft);overflow-wrap:anywhere}mark{background:var(--mark);color:inherit}.family mark{background:var(--soft)}
blockquote{margin:.3rem 0;padding:.3rem .6rem;background:var(--soft);white-space:pre-wrap}
.warn{color:var(--warn);font-weight:600}.scroll{overflow-x:auto}
@media print{pre{max-height:none}}
"""


def page(title: str, body: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Assemble a page.

    Parameters
    ----------
    title : str
        Its title, not escaped.
    body : iterable of str
        HTML, escaped.
    style, script : str
        Additional CSS and JavaScript, from this project and never from data.

    Returns
    -------
    str
        The page. Its content security policy forbids a browser to load anything: only pictures inside the page, and the style and script
        given here (by digest) are allowed.
    """
    styles = STYLE + style
    end = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(styles, script)}"><meta name="referrer" content="no-referrer">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title><style>{styles}</style></head>'
        f"<body><h1>{escape(title)}</h1>\n{''.join(body)}{end}</body></html>\n"
    )


def _policy(style: str, script: str) -> str:
    """Return the content security policy of a page."""

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"

    scripts = f" script-src {digest(script)};" if script else ""
    return f"default-src 'none'; img-src data:;{scripts} style-src {digest(style)}; base-uri 'none'; form-action 'none'"


def figure(path: Path, caption: str, *, scale: float = 1.0) -> str:
    """Return a figure of a PNG file and its caption; a note if the file is absent."""
    if not path.exists():
        return f'<figure class="warn">{escape(caption)}: no picture</figure>'
    return _figure(path.read_bytes(), caption, scale)


def picture_figure(path: Path, caption: str, *, px: int = THUMBNAIL_PX) -> str:
    """Return a figure of a picture as a thumbnail, at most `px` high and wide, in 16 grey levels."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("L")
        small.thumbnail((px, px), Image.Resampling.BOX)
        content = BytesIO()
        small.quantize(16).save(content, format="PNG", optimize=True)
    return _figure(content.getvalue(), caption, 1.0)


def _figure(png: bytes, caption: str, scale: float) -> str:
    # width and height are at fixed offsets in the header of a PNG
    width, height = (round(int.from_bytes(png[start : start + 4], "big") * scale) for start in (16, 20))
    data = b64encode(png).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" width="{width}" height="{height}" src="data:image/png;base64,{data}">'
        f'<figcaption dir="auto">{escape(caption)}</figcaption></figure>\n'
    )


def checkbox(question: str) -> str:
    """Return a checkbox for one thing that a reviewer has to look at."""
    return f'<label><input type="checkbox">{escape(question)}</label>\n'


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table; cells are escaped here."""
    top = "<tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head) + "</tr>" if head else ""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table>{top}{lines}</table></div>\n'


def warning(text: str) -> str:
    """Return a highlighted paragraph."""
    return f'<p class="warn">{escape(text)}</p>\n'
