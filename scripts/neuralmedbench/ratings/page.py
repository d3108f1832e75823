"""The offline page of a packet: the frame that all forms share, the form's own part, and the pictures as they were sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest
from neuralmedbench.files.pages import page
from neuralmedbench.records.requests import RequestTurn

HERE = Path(__file__).parent
HELP = "<!-- help -->"
"""Where the form's own words stand in `page.html`."""

Json = dict[str, Any]


def read_pictures(turns: Iterable[RequestTurn], root: Path) -> dict[str, str]:
    """Read the pictures of messages.

    Parameters
    ----------
    turns : iterable of RequestTurn
        Whose pictures.
    root : Path
        Repository root, to which their paths are relative.

    Returns
    -------
    dict of str to str
        The very bytes that were sent, in base64, by their SHA-256.

    Raises
    ------
    DataError
        If a picture is not there or not the one that was sent.
    """
    found: dict[str, str] = {}
    for image in (image for turn in turns for image in turn.images if not image.example):
        if image.sha256 in found:
            continue
        content = bytes_with_digest(root / image.path, image.sha256)
        if content is None:
            message = f"picture {image.sha256[:12]} is not there or not the one that was sent; run the workflow first"
            raise DataError(message)
        found[image.sha256] = base64.b64encode(content).decode("ascii")
    return found


def form_page(title: str, data: Json, form: Path) -> str:
    """Render the page of a packet.

    Parameters
    ----------
    title : str
        Title of the page.
    data : dict
        What it shows.
    form : Path
        The form's own files without their ending: `.html` (how it works), `.css` and `.js`, each put behind what all forms share.

    Returns
    -------
    str
        One HTML file. The texts in it are data that no browser reads as HTML; the script shows them as text alone.
    """
    # nothing in the data can end the element that holds it
    block = json.dumps(data, ensure_ascii=False, sort_keys=True).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    style, script = (f"{_text(HERE / f'page{ending}')}\n{_text(form.with_suffix(ending))}" for ending in (".css", ".js"))
    body = [
        f"{_text(HERE / 'page.html').replace(HELP, _text(form.with_suffix('.html')))}\n",
        f'<script type="application/json" id="packet">{block}</script>\n',
    ]
    return page(title, body, style=style, script=script)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
