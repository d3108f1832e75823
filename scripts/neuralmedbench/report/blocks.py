"""The blocks of the page in reading order: what each shows, the rule that makes it, and the configuration that controls it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import unescape

from neuralmedbench.records.result_columns import TABLES as COLUMNS
from neuralmedbench.records.results import PRIOR, SHAPES, files_of, is_simulated
from neuralmedbench.records.words import capital, plural
from neuralmedbench.report.source import LIST_OF_CASES, PageSource
from neuralmedbench.tables.words import case_noun

RESULTS, TRUST, DATA, DETAIL = "Results", "Trust", "Data", "Detail"
TABLES, PAGE = "build_tables", "build_report"
RUN, BENCHMARK, MODEL = "config/config.yaml", "config/benchmarks/", "config/models/"
NOT_MEASURED = ": not measured."
"""End of the line of an empty topic, as the macro `topic` writes it."""
DATA_SIGNS = ("<tbody", "data-few")
"""What the HTML of a block with data has: a table, or lines that are in the files alone."""
EMPTY, TAG = re.compile(r'<p class="empty"[^>]*><b>(.*?)</b>'), re.compile(r"<[^>]*>")
STATISTICS = (RUN, "statistics")


def _always(_: PageSource) -> bool:
    return True


def _with_rows(*topics: str) -> Callable[[PageSource], bool]:
    return lambda source: any(source.tables[topic] for topic in topics)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of the page.

    Attributes
    ----------
    id : str
        Anchor on the page and name of the template.
    name : str
        Name in the navigation.
    group : str
        Heading of the navigation that it belongs to.
    parts : mapping of str to str
        Topic of each part that shows one, by the anchor of the part; empty for a part that shows files.
    tables, figures : tuple of str
        Further tables of `results/tables/`, and figures of `results/figures/`, that it shows.
    files : tuple of str
        Other files that it shows, relative to `results/`; one with a `*` is named but not linked.
    rule : str
        Rule that makes the content.
    config : tuple of (str, str)
        Configuration file or folder, and the key that controls the content; an empty key means the whole file.
    needs : callable
        True if the page of a run includes the block; a block without data is included and states what is missing.
    """

    id: str
    name: str
    group: str
    parts: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    rule: str = TABLES
    config: tuple[str, str] = STATISTICS
    needs: Callable[[PageSource], bool] = _always

    @property
    def csv(self) -> tuple[str, ...]:
        """Files of its tables."""
        return tuple(dict.fromkeys(file for table in self.shown for file in files_of(table)))

    @property
    def shown(self) -> tuple[str, ...]:
        """Its topics and tables."""
        return (*dict.fromkeys(filter(None, self.parts.values())), *self.tables)

    @property
    def anchors(self) -> tuple[str, ...]:
        """Its own anchor and those of its parts."""
        return tuple(dict.fromkeys((self.id, *self.parts)))

    @property
    def template(self) -> str:
        """Path below the templates."""
        return f"blocks/{self.id}.html.j2"


def _with_all_tables(*blocks: Block) -> tuple[Block, ...]:
    """Put tables that no block shows below all numbers, where their files can be saved."""
    shown = {LIST_OF_CASES, *(file for block in blocks for file in block.csv)}
    others = tuple(name for name in COLUMNS if name not in shown)
    return tuple(replace(block, tables=(*block.tables, *others)) if block.id == "numbers" else block for block in blocks)


BLOCKS = _with_all_tables(
    Block(
        id="glance",
        name="At a glance",
        group=RESULTS,
        parts={"matrix": ""},
        tables=("leaderboard", "arms", "decomposition", "rates"),
        figures=("glance",),
        files=("tables/verdict.json",),
        config=(RUN, "benchmarks"),
    ),
    Block(
        id="leaderboard",
        name="Leaderboard",
        group=RESULTS,
        parts={"groups": "rates"},
        tables=("leaderboard",),
        figures=("leaderboard", "heatmap"),
    ),
    Block(
        id="title",
        name="Recognised or found",
        group=RESULTS,
        parts={"title": "title"},
        figures=("title",),
        config=(BENCHMARK, "arms"),
    ),
    Block(
        id="perception",
        name="Perception or reasoning",
        group=RESULTS,
        parts={"perception": "decomposition", "funnel": "funnel", "evidence": "evidence"},
        config=(BENCHMARK, "arms"),
    ),
    Block(
        id="arms",
        name="Controls",
        group=RESULTS,
        parts={"arms": "arms", "strategies": "rates", "degraded": "degradation", "grounding": "grounding", "pressure": "pressure"},
        figures=("arms",),
        config=(BENCHMARK, "arms"),
    ),
    Block(
        id="workup",
        name="Work-ups and dialogues",
        group=RESULTS,
        parts={"workup": "workup", "viewer": "viewer", "turns": "turns"},
        config=(BENCHMARK, "strategies"),
        needs=_with_rows("workup", "viewer", "turns"),
    ),
    Block(
        id="repeats",
        name="Repeats and form",
        group=RESULTS,
        parts={"repeats": "rates", "differential": "differential", "form": "validity", "fields": "fields", "ladder": "ladder"},
        tables=("samples",),
        config=(BENCHMARK, "samples"),
    ),
    Block(
        id="errors",
        name="Errors",
        group=RESULTS,
        parts={"errors": "errors", "steps": "reasoning"},
        figures=("errors",),
        config=(RUN, "graders"),
    ),
    Block(
        id="accuracy",
        name="Clinical reading",
        group=RESULTS,
        parts={"accuracy": "accuracy", "urgency": "urgency"},
        tables=("readings",),
        config=(RUN, "vocabulary"),
    ),
    Block(
        id="confidence",
        name="Confidence",
        group=RESULTS,
        parts={"confidence": "confidence", "abstention": "confidence", "unstated": "confidence"},
        figures=("reliability",),
    ),
    Block(
        id="pairs",
        name="Comparisons",
        group=RESULTS,
        parts={"pairs": "pairs", "changed": "revisions", "contamination": "contamination", "readers": "readers"},
        config=(RUN, "comparison"),
    ),
    Block(
        id="graders",
        name="Graders",
        group=TRUST,
        parts={
            "graders": "",
            "planted": "",
            "juries": "juries",
            "trust": "grader_vs_clinician",
            "calibrated": "calibrated",
            "similarity": "similarity",
        },
        tables=("graders",),
        config=(RUN, "graders"),
    ),
    Block(
        id="ratings",
        name="Clinicians",
        group=TRUST,
        tables=("ratings", "agreement"),
        config=("config/rating.yaml", ""),
    ),
    Block(
        id="cases",
        name="Cases",
        group=DATA,
        files=("cases/*.parquet",),
        rule="bundle_cases",
        config=(RUN, "report"),
    ),
    Block(
        id="cohort",
        name="Cases, items and patients",
        group=DATA,
        parts={"cohort": "cohort", "flow": "", "items": "plan"},
        tables=("case_flow", "items"),
        figures=("case_flow",),
        config=(BENCHMARK, ""),
    ),
    Block(
        id="privacy",
        name="De-identification",
        group=DATA,
        parts={"left": ""},
        tables=("deidentification", "destinations"),
        config=(BENCHMARK, "deidentification"),
    ),
    Block(
        id="cost",
        name="Cost and speed",
        group=DATA,
        tables=("costs",),
        figures=("cost",),
        config=(MODEL, "prices"),
    ),
    Block(
        id="numbers",
        name="All numbers",
        group=DETAIL,
        tables=SHAPES,
    ),
    Block(
        id="published",
        name="Published numbers",
        group=DETAIL,
        files=("tables/paper/*.csv",),
        rule="compare_published",
        config=(RUN, "published"),
        needs=lambda source: bool(source.papers),
    ),
    Block(
        id="methods",
        name="Methods and provenance",
        group=DETAIL,
        parts={"provenance": ""},
        files=("tables/notes.json", "provenance.json"),
        rule="record_provenance",
        config=(RUN, "models"),
    ),
    Block(
        id="checklists",
        name="Guidelines, cards, readiness",
        group=DETAIL,
        parts={"cards": "", "readiness": ""},
        tables=("readiness",),
        rule=PAGE,
        config=("config/checklists/", ""),
    ),
)
"""Blocks in reading order: what readers want first comes first, checklists last."""
ANSWER_BLOCKS = frozenset({"checklists"})
"""Blocks whose answers point to other blocks."""

PARTS = {part: topic for block in BLOCKS for part, topic in block.parts.items()}
"""Topic of every part."""


NEVER_FOLDED = frozenset({"glance", "leaderboard", "cases", "cohort", "privacy", "numbers", "methods", "checklists", "published"})
"""Blocks that say of a run what it is, even where they are empty."""


def blocks_of(source: PageSource) -> tuple[Block, ...]:
    """Return the blocks that the page of a run includes; without an answer of a model, published numbers come first."""
    names = {"cases": capital(plural(2, case_noun(source.noun)))}
    blocks = tuple(replace(block, name=names.get(block.id, block.name)) for block in BLOCKS if block.needs(source))
    if any(row["model"] != PRIOR for row in source.tables["leaderboard"]):
        return blocks
    return (*(replace(block, group=RESULTS) for block in blocks if block.id == "published"), *(b for b in blocks if b.id != "published"))


def folded(blocks: Iterable[Block], source: PageSource, sections: Mapping[str, str]) -> dict[str, str]:
    """Return the blocks without data, or with simulated data alone, and what the line says in which each is folded.

    `sections` is the HTML of the blocks by id.
    """
    lines = {}
    for block in blocks:
        if block.id in NEVER_FOLDED:
            continue
        html = sections[block.id]
        rows = [row for name in block.shown for row in source.tables[name]]
        if rows and all(map(is_simulated, rows)):
            lines[block.id] = "Only simulated raters."
        elif (empty := EMPTY.search(html)) and not any(sign in html for sign in DATA_SIGNS):
            words = unescape(TAG.sub("", empty[1]))
            lines[block.id] = "Not measured." if words.endswith(NOT_MEASURED) else words
    return lines


def menu(blocks: tuple[Block, ...]) -> dict[str, list[Block]]:
    """Group the blocks by their heading in the navigation."""
    grouped: dict[str, list[Block]] = {}
    for block in blocks:
        grouped.setdefault(block.group, []).append(block)
    return grouped
