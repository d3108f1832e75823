"""The blocks of the page in reading order: what each shows, the rule that makes it, and the configuration that controls it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import unescape

from neuralmedbench.records.result_columns import TABLES as COLUMNS
from neuralmedbench.records.results import PRIOR, files_of, is_simulated
from neuralmedbench.records.words import capital, plural
from neuralmedbench.report.source import LIST_OF_CASES, PageSource
from neuralmedbench.tables.words import case_noun

RESULTS, TRUST, DATA, DETAIL = "Results", "Trust", "Data", "Detail"
TABLES, PAGE = "build_tables", "build_report"
RUN, BENCHMARK, MODEL = "config/config.yaml", "config/benchmarks/", "config/models/"
EMPTY, TAG = re.compile(r'<p class="empty"><b>(.*?)</b>'), re.compile(r"<[^>]*>")
STATISTICS = (RUN, "statistics")


def _always(_: PageSource) -> bool:
    return True


def _with_rows(table: str) -> Callable[[PageSource], bool]:
    return lambda source: bool(source.tables.get(table))


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of the page.

    Attributes
    ----------
    id : str
        Anchor on the page and name of the template; lower-case letters, because checklists link to it.
    name : str
        Name in the navigation.
    group : str
        Heading of the navigation that it belongs to.
    tables, figures : tuple of str
        Tables of `results/tables/` and figures of `results/figures/` that it shows.
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
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    rule: str = TABLES
    config: tuple[str, str] = STATISTICS
    needs: Callable[[PageSource], bool] = _always

    @property
    def csv(self) -> tuple[str, ...]:
        """Files of its tables."""
        return tuple(dict.fromkeys(file for table in self.tables for file in files_of(table)))

    @property
    def template(self) -> str:
        """Path below the templates."""
        return f"blocks/{self.id}.html.j2"


def _with_all_tables(*blocks: Block) -> tuple[Block, ...]:
    """Put tables that no block shows below the methods, where their files can be saved."""
    shown = {LIST_OF_CASES, *(file for block in blocks for file in block.csv)}
    others = tuple(name for name in COLUMNS if name not in shown)
    return tuple(replace(block, tables=(*block.tables, *others)) if block.id == "methods" else block for block in blocks)


BLOCKS = _with_all_tables(
    Block(
        id="glance",
        name="At a glance",
        group=RESULTS,
        tables=("pairs", "arms", "decomposition", "rates"),
        figures=("glance",),
        files=("tables/verdict.json",),
        config=(RUN, "benchmarks"),
    ),
    Block(id="matrix", name="Models and benchmarks", group=RESULTS, tables=("leaderboard",), config=(RUN, "benchmarks")),
    Block(id="leaderboard", name="Leaderboard", group=RESULTS, tables=("leaderboard", "rates"), figures=("leaderboard",)),
    Block(
        id="perception",
        name="Perception or reasoning",
        group=RESULTS,
        tables=("decomposition", "turns"),
        config=(BENCHMARK, "arms"),
    ),
    Block(
        id="funnel",
        name="What right answers rest on",
        group=RESULTS,
        tables=("funnel",),
        config=(BENCHMARK, "arms"),
    ),
    Block(id="evidence", name="Right with evidence", group=RESULTS, tables=("evidence",), config=(BENCHMARK, "answer_form")),
    Block(
        id="repeats",
        name="Repeats",
        group=RESULTS,
        tables=("rates", "differential", "samples"),
        config=(BENCHMARK, "samples"),
    ),
    Block(id="errors", name="Errors", group=RESULTS, tables=("errors",), figures=("errors",), config=(RUN, "graders")),
    Block(
        id="accuracy",
        name="Clinical reading",
        group=RESULTS,
        tables=("accuracy", "readings"),
        config=(RUN, "vocabulary"),
    ),
    Block(id="urgency", name="Time-critical diagnoses", group=RESULTS, tables=("urgency",), config=("config/vocabulary/", "")),
    Block(
        id="steps",
        name="Steps of the reasoning",
        group=RESULTS,
        tables=("reasoning",),
        config=(RUN, "graders"),
        needs=_with_rows("reasoning"),
    ),
    Block(id="graders", name="Graders", group=TRUST, tables=("graders",), config=(RUN, "graders")),
    Block(id="planted", name="Planted errors", group=TRUST, tables=("graders",), config=(RUN, "grader_checks")),
    Block(id="juries", name="Juries", group=TRUST, tables=("juries",), config=("config/graders/", "members"), needs=_with_rows("juries")),
    Block(id="ratings", name="Clinicians", group=TRUST, tables=("ratings", "agreement"), config=("config/rating.yaml", "")),
    Block(
        id="trust",
        name="Who grades the grader",
        group=TRUST,
        tables=("grader_vs_clinician", "calibrated"),
        config=(RUN, "rating_rounds"),
    ),
    Block(id="similarity", name="Similarity", group=TRUST, tables=("similarity",), config=(RUN, "similarity")),
    Block(id="arms", name="Picture controls", group=TRUST, tables=("arms", "rates"), figures=("arms",), config=(BENCHMARK, "arms")),
    Block(
        id="degraded",
        name="Degraded pictures",
        group=TRUST,
        tables=("degradation",),
        config=(BENCHMARK, "arms"),
        needs=_with_rows("degradation"),
    ),
    Block(
        id="workup",
        name="Work-up",
        group=TRUST,
        tables=("workup",),
        config=(BENCHMARK, "strategies"),
        needs=_with_rows("workup"),
    ),
    Block(
        id="viewer",
        name="Looking through the scans",
        group=TRUST,
        tables=("viewer",),
        config=(BENCHMARK, "viewer"),
        needs=_with_rows("viewer"),
    ),
    Block(
        id="grounding",
        name="Did the picture cause the answer?",
        group=TRUST,
        tables=("grounding", "items"),
        config=(BENCHMARK, "arms"),
        needs=lambda source: source.pictured or bool(source.tables["grounding"]),
    ),
    Block(id="pressure", name="Pressure, order and wording", group=TRUST, tables=("pressure",), config=(BENCHMARK, "arms")),
    Block(id="cases", name="Cases", group=DATA, files=("cases/*.parquet",), rule="bundle_cases", config=(RUN, "report")),
    Block(id="cohort", name="Data card", group=DATA, tables=("cohort",), config=(BENCHMARK, "")),
    Block(id="items", name="Items and patients", group=DATA, tables=("items", "plan", "pairs"), config=(RUN, "comparison")),
    Block(id="demographics", name="Patients and scanners", group=DATA, tables=("cohort", "rates"), config=(BENCHMARK, "")),
    Block(
        id="flow",
        name="Case flow",
        group=DATA,
        tables=("case_flow",),
        figures=("case_flow",),
        config=(RUN, "max_quarantined_fraction"),
    ),
    Block(
        id="privacy",
        name="De-identification",
        group=DATA,
        tables=("deidentification",),
        config=(BENCHMARK, "deidentification"),
    ),
    Block(id="left", name="What left the machine", group=DATA, tables=("destinations",), config=(BENCHMARK, "allowed_destinations")),
    Block(id="methods", name="Methods", group=DETAIL, files=("tables/notes.json",)),
    Block(id="provenance", name="Provenance", group=DETAIL, files=("provenance.json",), rule="record_provenance", config=(RUN, "models")),
    Block(id="changed", name="What changed", group=DETAIL, tables=("revisions",), config=(MODEL, "revision")),
    Block(id="pairs", name="Model against model", group=DETAIL, tables=("pairs",)),
    Block(id="groups", name="Groups", group=DETAIL, tables=("rates",), figures=("heatmap",)),
    Block(
        id="contamination",
        name="Contamination",
        group=DETAIL,
        tables=("contamination",),
        config=(MODEL, "knowledge_cutoff"),
        needs=_with_rows("contamination"),
    ),
    Block(id="confidence", name="Calibration", group=DETAIL, tables=("confidence",), figures=("reliability",)),
    Block(id="abstention", name="Abstention", group=DETAIL, tables=("confidence",)),
    Block(id="cost", name="Cost and speed", group=DETAIL, tables=("costs",), figures=("cost",), config=(MODEL, "prices")),
    Block(id="fields", name="Structured answers", group=DETAIL, tables=("fields", "ladder"), config=(BENCHMARK, "")),
    Block(id="form", name="Form of the answers", group=DETAIL, tables=("validity",), config=("config/prompts/", "")),
    Block(id="readers", name="Clinicians as readers", group=DETAIL, tables=("readers",), config=(RUN, "models")),
    Block(id="readiness", name="Readiness", group=DETAIL, tables=("readiness",), config=("config/readiness.yaml", "")),
    Block(
        id="published",
        name="Published numbers",
        group=DETAIL,
        files=("tables/paper/*.csv",),
        rule="compare_published",
        config=(RUN, "published"),
        needs=lambda source: bool(source.papers),
    ),
    Block(id="cards", name="Cards", group=DETAIL, rule=PAGE, config=("config/cards/", ""), needs=lambda source: any(source.cards.values())),
    Block(id="checklists", name="Reporting guidelines", group=DETAIL, rule=PAGE, config=("config/checklists/", "")),
)
"""Blocks in reading order: what readers want first comes first, checklists last."""
ANSWER_BLOCKS = frozenset({"cards", "checklists"})
"""Blocks whose answers point to other blocks."""


NEVER_FOLDED = frozenset({"glance", "matrix", "leaderboard", "cases", "methods", "provenance", "published"})
"""Blocks that say of a run what it is, even where they are empty."""


NAMES_WITHOUT_PICTURES = {"arms": "Controls", "demographics": "Patients"}
"""Names of blocks on the page of texts alone."""


def blocks_of(source: PageSource) -> tuple[Block, ...]:
    """Return the blocks that the page of a run includes; without an answer of a model, published numbers come first."""
    names = {"cases": capital(plural(2, case_noun(source.noun)))} | ({} if source.pictured else NAMES_WITHOUT_PICTURES)
    blocks = tuple(replace(block, name=names.get(block.id, block.name)) for block in BLOCKS if block.needs(source))
    if any(row["model"] != PRIOR for row in source.tables["leaderboard"]):
        return blocks
    return (*(replace(block, group=RESULTS) for block in blocks if block.id == "published"), *(b for b in blocks if b.id != "published"))


def folded(blocks: Iterable[Block], source: PageSource, sections: Mapping[str, str]) -> dict[str, str]:
    """Return the blocks without data, or with simulated data alone, and what the line says in which each is folded.

    `sections` is the HTML of the blocks by id.
    """
    found = {}
    for block in blocks:
        html = sections[block.id]
        rows = next((rows for name in block.tables if (rows := source.tables[name])), [])
        if block.id in NEVER_FOLDED:
            continue
        if rows and all(map(is_simulated, rows)):
            found[block.id] = "Simulated raters alone."
        elif (said := EMPTY.search(html)) and "<tbody" not in html:
            found[block.id] = unescape(TAG.sub("", said[1]))
    return found


def menu(blocks: tuple[Block, ...]) -> dict[str, list[Block]]:
    """Group the blocks by their heading in the navigation."""
    grouped: dict[str, list[Block]] = {}
    for block in blocks:
        grouped.setdefault(block.group, []).append(block)
    return grouped
