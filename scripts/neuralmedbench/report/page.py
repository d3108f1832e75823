"""The page: one offline file that may load nothing and trusts no text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError
from neuralmedbench.figures.style import Look, looks
from neuralmedbench.figures.table import groups
from neuralmedbench.records.words import DASH, DASHED, decimal, p_value, percent, percent_span, points, points_span, spaced, whole
from neuralmedbench.report.blocks import BLOCKS, blocks_of, menu
from neuralmedbench.report.cases import case_index, with_room
from neuralmedbench.report.source import PageSource, visible_value
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.papers.shape import shapes

if TYPE_CHECKING:
    from jinja2 import Environment

SOFT_MEGABYTES = 10
NOTE_SIZE = 2_000
"""Characters of the words that say what was left out, at most."""
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("page.js", "reading.js")
SHAPES = {
    "o": "M6 1.5a4.5 4.5 0 1 0 .01 0z",
    "s": "M2 2h8v8H2z",
    "^": "M6 1.2 11 10.4H1z",
    "D": "M6 .8 11.2 6 6 11.2.8 6z",
    "v": "M6 10.8 1 1.6h10z",
    "P": "M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z",
    "X": "M3 1l3 3 3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3-3-3z",
    "h": "M6 .8 10.6 3.4v5.2L6 11.2 1.4 8.6V3.4z",
}
"""The markers of the figures as paths in a square of 12 units."""

FILTERS: dict[str, Callable[..., str]] = {
    "percent": partial(percent, missing=DASH),
    "span": partial(percent_span, form=DASHED),
    "points": partial(points, missing=DASH),
    "points_span": points_span,
    "decimal": partial(decimal, missing=DASH),
    "whole": partial(whole, missing=DASH),
    "p_value": partial(p_value, missing=DASH),
    "words": spaced,
}
"""The filters of the templates: how the cells of the tables look, the same everywhere."""


def render(source: PageSource) -> str:
    """Render the page as HTML: equal sources give equal text, and script and style are allowed by their digests alone."""
    style = _text("page.css")
    script = "\n".join(_text(name) for name in SCRIPTS)
    models = sorted({row["model"] for row in source.tables["leaderboard"]})
    return (
        templates(source.notes.get("blocks", {}))
        .get_template("page.html.j2")
        .render(
            source=source,
            menu=menu(blocks_of(source)),
            here={block.id: block.name for block in blocks_of(source)},
            tables=source.tables,
            titles=source.titles | {"prior": "Prior"},
            style=style,
            script=script,
            policy=_policy(style, script),
            looks={name: _mark(look) for name, look in looks(models).items()},
        )
    )


def templates(said: dict[str, dict[str, str]]) -> Environment:
    """Give the templates of the page and its blocks: what is put in is made visible and escaped, and what is not there is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible_value,
    )
    environment.globals |= {"BLOCKS": {block.id: block for block in BLOCKS}, "SAID": said}
    environment.filters |= FILTERS | {"group": groups, "mask": _mask, "without": _without, "case_index": case_index, "shapes": shapes}
    return environment


def write_report(path: Path, source: PageSource, max_megabytes: float) -> list[str]:
    """Write the page; where it has no room for the answers of all cases, those of some are left out, and it says so.

    Returns
    -------
    list of str
        What the person who runs the pipeline should know of its size.

    Raises
    ------
    ConfigError
        If it is larger than the limit without the answers of any case: a page that a browser cannot open is no report.
    """
    page, remarks = render(source), list[str]()
    excess = len(page.encode()) - int(max_megabytes * 1e6)
    if excess > 0:
        cases, pictures = with_room(source.cases, source.pictures, excess + NOTE_SIZE)
        page = render(replace(source, cases=cases, pictures=pictures))
        left = sum(not case.packed for case in cases)
        remarks.append(
            f"the report would hold {excess / 1e6 + max_megabytes:.1f} MB, {max_megabytes:g} are allowed: "
            f"{left:,} of {len(cases):,} cases stand there without their answers"
        )
    megabytes = len(page.encode()) / 1e6
    if megabytes > max_megabytes:
        message = (
            f"the report holds {megabytes:.1f} MB without the answers of any case, {max_megabytes:g} are allowed: "
            "report fewer benchmarks or models at once, or raise `report.max_megabytes`"
        )
        raise ConfigError(message)
    if megabytes > SOFT_MEGABYTES:
        remarks.append(f"the report holds {megabytes:.1f} MB, more than the {SOFT_MEGABYTES} that a page should hold")
    write_text(path, page)
    return remarks


def incomplete_line(source: PageSource) -> str:
    """Count the responses that are not there, for the person who runs the pipeline."""
    # nobody can be asked again for what a reader was not shown
    readers = {row["model"] for row in source.tables["leaderboard"] if row["reader"]}
    rows = [row for row in source.tables["efficiency"] if row["model"] not in readers]
    requests, answered = (sum(int(row[name]) for row in rows) for name in ("requests", "answered"))
    if requests == answered:
        return f"all {requests:,} responses are complete"
    return f"{requests - answered:,} of {requests:,} responses are incomplete: `make retry` asks for them again"


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"


def _mark(look: Look) -> dict[str, Any]:
    return {"colour": "currentColor" if look.hollow else look.colour, "path": SHAPES[look.marker], "hollow": look.hollow}


def _mask(rows: list[dict[str, str]], column: str, *values: str) -> list[dict[str, str]]:
    return [row for row in rows if row[column] in values]


def _without(rows: list[dict[str, str]], column: str, start: str) -> list[dict[str, str]]:
    return [row for row in rows if not row[column].startswith(start)]


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").strip()
