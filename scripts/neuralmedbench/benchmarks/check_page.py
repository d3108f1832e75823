"""The page of `check_benchmark`: what was found, and what a model would be sent, word for word."""

from __future__ import annotations

from html import escape
from pathlib import Path

from neuralmedbench.benchmarks.check import Check
from neuralmedbench.files.pages import page, picture_figure, table, warning
from neuralmedbench.records.requests import Request, RequestTurn

PICTURES = 6
"""Pictures of a turn that are shown; the others are counted."""


def check_page(found: Check, root: Path) -> str:
    """Give the page.

    Parameters
    ----------
    found : Check
        What was found.
    root : Path
        Folder to which the paths of pictures are relative.

    Returns
    -------
    str
        HTML without a script; every text is escaped.
    """
    told = "".join(warning(text) for text in found.warnings) or "<p>Nothing is wanting.</p>"
    prompts = "".join(_request(request, root) for request in found.requests)
    intro = (
        "<p>One request of each runner, family, arm and strategy, as a model would be sent it. Pictures are small here and follow their"
        " text in the order shown.</p>"
    )
    return page(f"Benchmark {found.benchmark}", [table(found.rows), told, f"<h2>Prompts</h2>{intro}{prompts}" if prompts else ""])


def _request(request: Request, root: Path) -> str:
    head = f"<h2>{escape(f'{request.runner}, arm {request.arm}, strategy {request.strategy}')}</h2><p>{escape(request.item_id)}</p>"
    turns = "".join(_turn(turn, root) for turn in request.turns)
    schema = f"<h3>Answer schema</h3><pre>{escape(request.answer_schema)}</pre>" if request.answer_schema else ""
    return f"{head}<h3>System</h3><pre>{escape(request.system)}</pre>{turns}{schema}"


def _turn(turn: RequestTurn, root: Path) -> str:
    figures = "".join(
        picture_figure(root / image.path, image.label)
        if (root / image.path).exists()
        else warning(f"{image.label}: the picture is not there")
        for image in turn.images[:PICTURES]
    )
    more = f"<p>and {len(turn.images) - PICTURES} more pictures</p>" if len(turn.images) > PICTURES else ""
    return f"<h3>User</h3><pre>{escape(turn.text)}</pre>{figures}{more}"
