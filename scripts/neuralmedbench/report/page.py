"""The page: one offline file that may load nothing and trusts no text."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError
from neuralmedbench.figures.style import Look, looks
from neuralmedbench.figures.table import groups
from neuralmedbench.io.files import write_text
from neuralmedbench.report.formats import FILTERS
from neuralmedbench.report.source import Source
from neuralmedbench.stats.papers.published import line_of

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
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


def render(source: Source) -> str:
    """Render the page.

    Parameters
    ----------
    source : Source
        Everything that it shows.

    Returns
    -------
    str
        HTML; equal sources give equal text. Script and style are allowed by their digests alone.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8").strip() for name in ("page.css", "page.js"))
    models = sorted({row["model"] for row in source.tables["leaderboard"]})
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            source=source,
            tables=source.tables,
            titles=source.titles | {"prior": "Prior"},
            style=style,
            script=script,
            policy=_policy(style, script),
            looks={name: _mark(look) for name, look in looks(models).items()},
        )
    )


def templates() -> Environment:
    """Give the templates of the page and its blocks: everything that is put in is escaped, and what is not there is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= FILTERS | {"group": groups, "mask": _mask, "lines": _lines}
    return environment


def write_report(path: Path, source: Source, max_megabytes: float) -> None:
    """Write the page.

    Raises
    ------
    ConfigError
        If it is larger than the limit: a page that a browser cannot open is no report.
    """
    page = render(source)
    megabytes = len(page.encode()) / 1e6
    if megabytes > max_megabytes:
        message = (
            f"the report holds {megabytes:.1f} MB, {max_megabytes:g} are allowed: lower `slices.per_sequence`, report fewer benchmarks at once, "
            "or raise `report.max_megabytes`"
        )
        raise ConfigError(message)
    write_text(path, page)


def incomplete_line(source: Source) -> str:
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


def _lines(rows: list[dict[str, str]]) -> dict[tuple[str, ...], list[dict[str, str]]]:
    """Rows of published numbers and ours by the line in which they stand."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(line_of(row), []).append(row)
    return found


def _mask(rows: list[dict[str, str]], column: str, *values: str) -> list[dict[str, str]]:
    return [row for row in rows if row[column] in values]
