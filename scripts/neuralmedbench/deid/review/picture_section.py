"""What a sheet shows of the pictures of a case that are not scans."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path

from neuralmedbench.deid.case_stages import Stage
from neuralmedbench.files.pages import THUMBNAIL_PX, picture_figure, tick
from neuralmedbench.records.case import PictureFate, State

LEGIBLE_PX = 480
"""So large that letters which were left can be seen before a picture is opened."""


def picture_section(stage: Stage, at: Path) -> str:
    """HTML of the pictures of a case, small, each with a link to the picture itself.

    Parameters
    ----------
    stage : Stage
        The de-identified case.
    at : Path
        Where the sheet will lie.
    """
    shown = [picture for picture in stage.case.pictures if picture.state is State.OK]
    return "".join(
        [
            f"<h2>Pictures: what a model is shown ({len(shown)})</h2>",
            tick("Opened in its full size (follow the picture), none shows a name, a date or a number of a patient, up to its rims."),
            tick("None shows a face: no photograph, no surface, no profile. Faces of single pictures are not removed: exclude the case."),
            tick("Each is what its caption says, and no letter or arrow that was meant to be seen is hidden."),
            linked_figures(((picture.path, caption(picture)) for picture in shown), stage.folder, at, px=LEGIBLE_PX),
        ]
    )


def caption(picture: PictureFate) -> str:
    """Name a picture as a reviewer sees it: its id, and what it is said to show."""
    said = [picture.sequence if picture.sequence != "unknown" else "", picture.plane]
    return ", ".join([picture.image_id, *(word for word in said if word)])


def linked_figures(pictures: Iterable[tuple[str, str]], folder: Path, at: Path, *, px: int = THUMBNAIL_PX) -> str:
    """HTML of pictures, given by path below a folder and caption: small, with links from where the page lies to the pictures as they are."""
    body = []
    for path, words in pictures:
        link = escape(Path(os.path.relpath(folder / path, at.parent)).as_posix())
        body.append(f'<a href="{link}">{picture_figure(folder / path, words, px=px).rstrip()}</a>\n')
    return "".join(body)
