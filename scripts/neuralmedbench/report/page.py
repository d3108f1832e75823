"""The page: its blocks rendered into one offline file that loads nothing and escapes all text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from markupsafe import Markup

from neuralmedbench.config.checklists import ANSWER_WORDS
from neuralmedbench.errors import ConfigError
from neuralmedbench.figures.style import Look, looks
from neuralmedbench.figures.table import GREY, groups
from neuralmedbench.files.pages.page import page_templates, render_page
from neuralmedbench.records.results import ALL_ARMS, FAMILY_TITLES, FEWEST, PATIENT, PRIOR, by_measure, is_simulated
from neuralmedbench.records.words import (
    DASH,
    DASHED,
    ONCE,
    apart,
    capital,
    counted,
    decimal,
    items_of,
    p_value,
    percent,
    percent_span,
    plural,
    points,
    points_span,
    spaced,
    unsure_span,
    whole,
)
from neuralmedbench.report.blocks import ANSWER_BLOCKS, BLOCKS, PARTS, Block, blocks_of, folded, menu
from neuralmedbench.report.cases import case_index, leave_out_cases, pack_bytes
from neuralmedbench.report.elements import (
    TEMPLATES,
    Filled,
    answers_on_page,
    check_places,
    element_names,
    filled_elements,
    titles_of,
)
from neuralmedbench.report.source import DEFAULT_PLACE, ClusterCell, FewPatientsCell, PageSource, RunPlace
from neuralmedbench.report.topics import SHOWN_FROM, Measures, topic_elements, topic_table
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.form_warnings import FORM_LIMIT
from neuralmedbench.tables.papers.shape import shapes
from neuralmedbench.tables.words import case_noun

if TYPE_CHECKING:
    from jinja2 import Environment


SOFT_MEGABYTES = 10
"""A larger report gets a remark."""
PACKED_ROWS = 30
"""A folded table of more rows is compressed until it is opened, and never printed: 20 models have 10,000 rows in such tables."""
MOST_LINES = 20
"""Lines of a topic's table that are shown; a longer table is folded below its sentence."""
PACKED = re.compile("<!--packed-->(.*?)<!--/packed-->", flags=re.DOTALL)
NOTE_SIZE = 2_000
"""Upper limit of the characters in the notes on cases that were left out."""
TITLE = "Neural-MedBench report"
STYLE = TEMPLATES / "page.css"
SCRIPTS = ("page.js", "models.js", "pictures.js", "cases.js", "numbers.js", "reading.js")
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
"""Markers of the figures, as SVG paths in a square of 12 units."""


def _grey(form: Callable[..., str], *, counted: bool = False) -> Callable[..., str]:
    """Let a filter show numbers about few patients in grey; `counted` adds how many there are."""

    def formatted(cell: object, *args: Any, **named: Any) -> str:
        text = form(cell, *args, **named)
        if not isinstance(cell, FewPatientsCell) or text in ("", DASH):
            return text
        return _snippets().few(text, cell.few if counted else "")

    return formatted


def _whole(cell: str) -> str:
    return counted(int(cell), cell.noun) if isinstance(cell, ClusterCell) else whole(cell, missing=DASH)


def _sample(row: dict[str, str]) -> str:
    """Count the items and patients of a row; a hidden count is its mark."""
    if row["n_items"].isdigit() and row["n_patients"].isdigit():
        return items_of(int(row["n_items"]), int(row["n_patients"]), row.get("cluster"))
    parts = ((row["n_items"], "item"), (row["n_patients"], row.get("cluster") or "patient"))
    return ", ".join(counted(int(cell), noun) if cell.isdigit() else f"{cell} {plural(2, noun)}" for cell, noun in parts if cell)


FILTERS: dict[str, Callable[..., str]] = {
    "percent": _grey(partial(percent, missing=DASH), counted=True),
    "span": _grey(partial(percent_span, form=DASHED)),
    "between": _grey(partial(percent_span, form=ONCE)),
    "points": _grey(partial(points, missing=DASH), counted=True),
    "points_span": _grey(points_span),
    "apart": _grey(apart, counted=True),
    "unsure_span": _grey(unsure_span, counted=True),
    "decimal": _grey(partial(decimal, missing=DASH), counted=True),
    "whole": _whole,
    "sample": _sample,
    "p_value": _grey(partial(p_value, missing=DASH)),
    "words": spaced,
    "capital": capital,
    "family": lambda family: FAMILY_TITLES.get(family, spaced(family)),
}
"""Filters of the templates, which format the cells of tables in the same way everywhere."""


def render(source: PageSource) -> str:
    """Render the page as HTML: equal sources give equal text.

    Raises
    ------
    ConfigError
        If a checklist or card names an element that no page has.
    """
    check_places(
        {"config/checklists": source.checklists, **{f"config/cards/{name}.yaml": forms for name, forms in source.cards.items()}},
        {anchor: elements_of(block, anchor, source.notes["measures"]) for block in BLOCKS for anchor in block.anchors},
    )
    models = sorted({row["model"] for row in source.tables["leaderboard"]})
    grey = {name for name, drawing in source.figures.items() if GREY in drawing and source.profile == "internal"}
    environment, blocks = templates(source.notes, grey, source.run, source.noun), blocks_of(source)
    context = {
        "source": source,
        "tables": source.tables,
        "titles": source.titles | {name: title for name, title in source.models.items() if name == PRIOR},
        "looks": {name: shape_of(look) for name, look in looks(models).items()},
        "words": ANSWER_WORDS,
        "models": list(source.models),
        "pictured": source.pictured,
    }
    # checklists and cards come last: an answer counts as one only if the rest of this page has it
    sections = _sections(environment, [block for block in blocks if block.id not in ANSWER_BLOCKS], context)
    sheets = [*source.checklists, *(form for forms in source.cards.values() for form in forms)]
    named = {name.partition(".")[0] for sheet in sheets for item in sheet.items for name in item.elements}
    filled = filled_elements(sections[block.id] for block in blocks if block.id in sections and named & {*block.anchors})
    context["source"] = with_answers_on_page(source, filled)
    answer_blocks = [block for block in blocks if block.id in ANSWER_BLOCKS]
    later = {anchor: block.name for block in answer_blocks for anchor in block.anchors}
    context["here"] = titles_of(sections.values()) | later
    sections |= _sections(environment, answer_blocks, context)
    context |= {"title": TITLE, "folded": folded(blocks, source, sections), "menu": menu(blocks), "sections": sections}
    scripts = [TEMPLATES / name for name in SCRIPTS]
    return render_page(TEMPLATES / "page.html.j2", context, styles=[STYLE], scripts=scripts, environment=environment)


def elements_of(block: Block, anchor: str, measures: Mapping[str, Measures]) -> frozenset[str]:
    """Return the names of the elements of a block or part: those of its template, and the measures and slices of its topic."""
    topic = block.parts.get(anchor)
    return element_names(block.template) | (topic_elements(measures[topic]) if topic else frozenset())


def with_answers_on_page(source: PageSource, filled: Filled) -> PageSource:
    """Return the source whose checklists and cards claim what is on the page, and no more."""
    titles = {name: benchmark.title for name, benchmark in source.benchmarks.items()}
    cards = {
        name: [answers_on_page(form, filled, {name: titles.get(name, name)}) for form in forms] for name, forms in source.cards.items()
    }
    return replace(source, checklists=[answers_on_page(form, filled, titles) for form in source.checklists], cards=cards)


def _sections(environment: Environment, blocks: list[Block], context: dict[str, Any]) -> dict[str, str]:
    return {block.id: environment.get_template(block.template).render(context) for block in blocks}


def templates(notes: Mapping[str, Any], grey: Collection[str] = (), run: RunPlace = DEFAULT_PLACE, noun: str = PATIENT) -> Environment:
    """Return the environment of the templates: values are made visible and escaped, and an undefined name is an error.

    `notes` is `notes.json`, with takeaway and `n` by block and the definitions of measures by topic; `grey` names the figures with grey marks, of few patients; `run` is where the
    page lies; `noun` is what its benchmarks count as one patient.
    """
    environment = page_templates(TEMPLATES)
    environment.globals |= {"BLOCKS": {block.id: block for block in BLOCKS}, "NOTES": notes.get("blocks", {}), "FEWEST": FEWEST}
    environment.globals |= {"PACKED_ROWS": PACKED_ROWS, "PARTS": PARTS, "SHOWN_FROM": SHOWN_FROM, "MOST_LINES": MOST_LINES}
    environment.globals |= {"FORM_LIMIT": FORM_LIMIT, "MEASURES": notes.get("measures", {})}
    environment.globals |= {"GREY": grey, "RUN": run, "GLOSSARY": yaml.safe_load((TEMPLATES / "glossary.yaml").read_text(encoding="utf-8"))}
    nouns = plural(2, noun)
    environment.globals |= {"NOUN": noun, "NOUNS": nouns, "COUNTED": "Patients" if noun == PATIENT else f"Independent {nouns}"}
    environment.globals |= {"CASE": case_noun(noun), "CASES": plural(2, case_noun(noun))}
    environment.filters |= FILTERS | {
        "group": groups,
        "mask": _mask,
        "by_measure": by_measure,
        "is_simulated": is_simulated,
        "by_number": _by_number,
        "without": _without,
        "case_index": case_index,
        "shapes": shapes,
        "packed": _packed,
        "topic_table": topic_table,
    }
    return environment


def write_report(path: Path, source: PageSource, max_megabytes: float) -> list[str]:
    """Write the page; if it would be too large, leave out the answers of some cases and state this on the page.

    Returns
    -------
    list of str
        Remarks on its size, for the person who runs the pipeline.

    Raises
    ------
    ConfigError
        If it exceeds the limit even without the answers of any case: a browser could not open the page.
    """
    # rendered in full first; only a page that is too large is rendered again
    page, remarks = render(source), list[str]()
    excess = len(page.encode()) - int(max_megabytes * 1e6)
    if excess > 0:
        cases, pictures = leave_out_cases(source.cases, source.pictures, excess + NOTE_SIZE)
        page = render(replace(source, cases=cases, pictures=pictures))
        left = sum(not case.packed for case in cases)
        remarks.append(
            f"the report may hold {max_megabytes:g} MB (`report.max_megabytes`): "
            f"{left:,} of {len(cases):,} cases are shown without their answers"
        )
    # bytes of UTF-8, not characters
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
    """Return one line on missing responses, for the person who runs the pipeline."""
    # answers of readers are never requested again: a reader answers only the questions of a round
    readers = {row["model"] for row in source.tables["leaderboard"] if row["reader"]}
    rows = [row for row in source.tables["costs"] if row["arm"] == ALL_ARMS and row["model"] not in readers]
    requests, answered = (sum(int(row[name]) for row in rows) for name in ("requests", "answered"))
    if requests == answered:
        return f"all {requests:,} responses are complete"
    return f"{requests - answered:,} of {requests:,} responses are incomplete; the last lines of the run say why, and what to do"


def shape_of(look: Look) -> dict[str, Any]:
    """Return what the macro `mark` draws for a model."""
    return {"colour": "currentColor" if look.hollow else look.colour, "path": SHAPES[look.marker], "hollow": look.hollow}


def _packed(html: str) -> str:
    """Compress the long tables of a block."""
    return Markup(PACKED.sub(lambda match: str(_snippets().packed(pack_bytes(match[1].strip().encode()))), html))


@cache
def _snippets() -> Any:
    """Return the macros for what filters make."""
    return page_templates(TEMPLATES).get_template("snippets.html.j2").module


def _mask(rows: list[dict[str, str]], column: str, *values: str) -> list[dict[str, str]]:
    return [row for row in rows if row[column] in values]


def _by_number(rows: list[dict[str, str]], column: str) -> list[dict[str, str]]:
    return sorted(rows, key=lambda row: float(row[column]))


def _without(rows: list[dict[str, str]], column: str, start: str) -> list[dict[str, str]]:
    return [row for row in rows if not row[column].startswith(start)]
