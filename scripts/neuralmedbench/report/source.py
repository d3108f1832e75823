"""Read everything that the report shows from files; the report computes no result."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.cards.card import read_card
from neuralmedbench.config.benchmark import BenchmarkConfig, are_shallow_texts
from neuralmedbench.config.checklists import AnswerSheet, ChecklistConfig
from neuralmedbench.config.load import (
    load_benchmark,
    load_checklists,
    load_grader,
    load_model,
    load_published,
    load_readiness,
    read_yaml,
    withhold_outside_paths,
)
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.figures.style import INK
from neuralmedbench.figures.table import Row, in_order, model_order
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.files.tables import read_records, read_table
from neuralmedbench.files.texts import visible
from neuralmedbench.records.bundle import BundleImage, CaseBundle
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Kind
from neuralmedbench.records.result_columns import TABLES, TOPICS
from neuralmedbench.records.results import PATIENT, PRIOR, SHAPES, mark_of, types_of_table
from neuralmedbench.records.words import counted
from neuralmedbench.report.cases import CaseBlock, case_blocks, pack_bytes, previews
from neuralmedbench.tables.words import cluster_of

CSS_PX_PER_UNIT = 1.4
"""Largest size of a figure on the page: CSS pixels per point of the drawing."""


def inline_svg(text: str, name: str) -> str:
    """Prepare an SVG file for embedding: prefix its ids with `name`, and let text and lines follow the text colour of the page (dark theme)."""
    # ids, and every reference to them: href, url() and aria-labelledby
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(
        r'aria-labelledby="([^"]+)"', lambda match: f'aria-labelledby="{" ".join(f"{name}-{part}" for part in match[1].split())}"', text
    )
    # the drawing's width in points sets the largest size; narrower pages scale it down
    width = float(re.search(r'viewBox="0 0 ([0-9.]+)', text)[1])  # type: ignore[index]
    text = text.replace("<svg ", f'<svg width="{width * CSS_PX_PER_UNIT:.0f}" ', 1)
    return visible(text.replace(INK, "currentColor").strip())


class SuppressedCell(str):
    """An empty cell with the reason why it is empty: formatted as a number, it appears as its mark."""

    __slots__ = ("mark",)
    mark: str

    def __new__(cls, mark: str) -> SuppressedCell:
        """Make an empty cell that was suppressed because of `mark`."""
        cell = super().__new__(cls, "")
        cell.mark = mark
        return cell


class ClusterCell(str):
    """A number of what a benchmark has in the place of patients: formatted as a whole number, it says what they are."""

    __slots__ = ("noun",)
    noun: str

    def __new__(cls, cell: str, noun: str) -> ClusterCell:
        """Make the cell of a number of so called things (`item`)."""
        made = super().__new__(cls, cell)
        made.noun = noun
        return made


BESIDE = ("low", "high", "_p", "p_value", "p_corrected")
"""Ends of the names of columns that stand beside the number that they belong to."""


class FewPatientsCell(str):
    """A number about fewer than `FEWEST` patients: formatted, it is grey and has their number, unless it is an end of an interval."""

    __slots__ = ("few",)
    few: str

    def __new__(cls, cell: str, few: str) -> FewPatientsCell:
        """Make the cell of a number about so `few` patients; empty for a number beside another one that has it."""
        made = super().__new__(cls, cell)
        made.few = few
        return made


def with_marks(rows: Iterable[Row], kinds: Mapping[str, str] | None = None) -> list[Row]:
    """Mark the empty cells of suppressed rows with the reason, numbers about few patients with their number, and counts of no patients.

    `kinds` are the types of the columns (`result_columns.TABLES`).
    """
    numbers = [name for name, kind in (kinds or {}).items() if kind == "float"]
    counts = [name for name in kinds or {} if name.startswith("n_patients")]

    def marked(row: Row) -> Row:
        if (cluster := row.get("cluster", "")) not in ("", PATIENT):
            row = row | {name: ClusterCell(row[name], cluster) for name in counts if row[name].isdigit()}
        if mark := mark_of(row):
            return {name: cell or SuppressedCell(mark) for name, cell in row.items()}
        few = row.get("few_patients")
        return row | {name: FewPatientsCell(row[name], "" if name.endswith(BESIDE) else few) for name in numbers} if few else row

    return [marked(row) for row in rows]


def check_profile(profile: str, withheld: list[str], disclosure: object) -> None:
    """Refuse a public page with non-public patients whose tables were made for an internal report; ConfigError."""
    if profile == "public" and withheld and not disclosure:
        message = (
            f"{', '.join(withheld)}: the tables were made for an internal report; a public report on non-public patients needs others: "
            "set `report.profile: public` and make tables, figures and report again"
        )
        raise ConfigError(message)


LIST_OF_CASES = "cases"
"""Table that is no file of the page: it lists cases one by one, of which a public page shows only what may be shown."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """Published numbers compared with ours: the publication, and the rows of `results/tables/paper/<name>.csv`."""

    name: str
    published: PublishedConfig
    rows: list[Row]


@dataclass(frozen=True)
class RunPlace:
    """Where the page of a run lies: its folder relative to the project, and the configuration file that decides."""

    results: str = "results"
    configfile: str = "config/config.yaml"

    @property
    def root(self) -> str:
        """The way from the page to the project."""
        return "../" * len(Path(self.results).parts)


DEFAULT_PLACE = RunPlace()


@dataclass(frozen=True, kw_only=True)
class PageSource:
    """Everything that the page shows.

    Attributes
    ----------
    tables : dict of str to list of Row
        Tables of results; cells are text.
    csv : dict of str to str
        The files of these tables, byte for byte, packed; published tables as `paper-<name>`.
    figures : dict of str to str
        SVG elements.
    cases : list of CaseBlock
        The case browser.
    pictures : dict of str to str
        Previews of the pictures of its cases, by digest.
    withheld : list of str
        Benchmarks whose cases a public report does not show.
    files : dict of str to str
        Prompt templates and configuration files of the run, verbatim, by path.
    titles : dict of str to str
        Titles of models and graders.
    readiness : ReadinessConfig
        Requirements of the site for a model.
    checklists : list of ChecklistConfig
        Reporting guidelines, item by item.
    papers : list of Paper
        Published numbers compared with ours.
    cards : dict of str to list of AnswerSheet
        Benchmark card and datasheet of each benchmark.
    descriptions : dict of str to str
        Croissant files, verbatim, by benchmark.
    run : RunPlace
        Where the page lies, for its links.
    """

    profile: str
    benchmarks: dict[str, BenchmarkConfig]
    titles: dict[str, str]
    tables: dict[str, list[Row]]
    csv: dict[str, str]
    figures: dict[str, str]
    verdict: dict[str, Any]
    notes: dict[str, Any]
    provenance: dict[str, Any]
    audits: dict[str, Audit]
    cases: list[CaseBlock]
    pictures: dict[str, str]
    withheld: list[str]
    files: dict[str, str]
    readiness: ReadinessConfig
    checklists: list[ChecklistConfig]
    papers: list[Paper] = field(default_factory=list)
    cards: dict[str, list[AnswerSheet]] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    run: RunPlace = DEFAULT_PLACE

    @property
    def few(self) -> set[str]:
        """Tables with numbers about fewer than `FEWEST` patients."""
        return {name for name, rows in self.tables.items() if any(row.get("few_patients") for row in rows)}

    @property
    def noun(self) -> str:
        """What the benchmarks count as one patient, as the sentences of the tables say it."""
        return cluster_of(self.tables["leaderboard"])

    @property
    def pictured(self) -> bool:
        """True unless all benchmarks are texts: only then the page does not speak of pictures."""
        return not self.benchmarks or any(config.kind is not Kind.TEXT for config in self.benchmarks.values())

    @property
    def is_shallow_text(self) -> bool:
        """True if no benchmark has pictures or depth: then the page does not ask whether a model reasons like a neurologist."""
        return bool(self.benchmarks) and are_shallow_texts(self.benchmarks.values())

    @property
    def models(self) -> dict[str, str]:
        """Titles of the models of the leaderboard, in the order of every table and figure."""
        return model_order(self.tables["leaderboard"])

    @property
    def kinds(self) -> dict[str, set[str]]:
        """Models of the leaderboard by kind, as the first screen sets them apart."""
        kinds: dict[str, set[str]] = {"models": set(), "built-in baselines": set(), "readers": set(), "reference": set()}
        for row in self.tables["leaderboard"]:
            kind = (
                "reference"
                if row["model"] == PRIOR
                else "readers"
                if row["reader"]
                else "built-in baselines"
                if row["baseline"] == "true"
                else "models"
            )
            kinds[kind].add(row["model"])
        return kinds

    @property
    def sizes(self) -> list[str]:
        """Number of models, built-in baselines and readers, as far as there are any."""
        found = [counted(len(self.kinds[noun + "s"]), noun) for noun in ("model", "built-in baseline", "reader") if self.kinds[noun + "s"]]
        return found or ["0 models"]

    @property
    def phantoms(self) -> list[str]:
        """Titles of the benchmarks whose subjects are phantoms."""
        return [self.benchmarks[name].title for name, audit in self.audits.items() if audit.kind == "phantom"]


def read_source(
    root: Path,
    results: Path,
    lists: Mapping[str, Sequence[str]],
    *,
    profile: str,
    max_megabytes: float = math.inf,
) -> PageSource:
    """Read everything that the page shows.

    Parameters
    ----------
    root : Path
        Repository root; configuration, prompts, audits and pictures are read from the paths of the rules.
    results : Path
        Folder of tables, figures, case bundles and provenance.
    lists : mapping of str to sequence of str
        The run lists: `benchmarks`, `models`, `graders`, and `published` (numbers to compare with).
    profile : str
        `internal` or `public`; a public report leaves out the cases of non-public patients.
    max_megabytes : float
        Largest page; pictures for which it cannot have room are not made.

    Returns
    -------
    PageSource
        Content of the page.

    Raises
    ------
    ConfigError, DataError
        If a file is missing or invalid.
    """
    benchmarks, models, graders, papers = (lists[name] for name in ("benchmarks", "models", "graders", "published"))
    audits = {name: read_audit(root / "data" / "deidentified" / name / "audit.json") for name in benchmarks}
    # a public report withholds the cases of patients; phantoms and public subjects are shown
    withheld = [name for name, audit in audits.items() if profile == "public" and audit.kind == "patient"]
    shown = [name for name in benchmarks if name not in withheld]
    folder = root / "config"
    notes = read_json(results / "tables" / "notes.json")
    check_profile(profile, withheld, notes.get("disclosure"))
    cases, pictures = _read_cases(root, results, shown, max_megabytes * 1e6)
    provenance = read_json(results / "provenance.json")
    judging = {name: load_grader(folder / "graders" / f"{name}.yaml") for name in graders}
    asked = sorted({grader.asks for grader in judging.values() if grader.asks} - set(models))
    return PageSource(
        profile=profile,
        benchmarks={name: load_benchmark(folder, name) for name in benchmarks},
        titles={name: load_model(folder / "models" / f"{name}.yaml").title for name in models}
        | {name: grader.title for name, grader in judging.items()},
        tables=_tables(results / "tables"),
        csv={
            name: pack_bytes((results / "tables" / f"{path}.csv").read_bytes())
            for name, path in (
                {name: name for name in TABLES if name != LIST_OF_CASES} | {f"paper-{name}": f"paper/{name}" for name in papers}
            ).items()
        },
        figures={name: inline_svg((results / "figures" / f"{name}.svg").read_text(encoding="utf-8"), f"figure-{name}") for name in FIGURES},
        verdict=read_json(results / "tables" / "verdict.json"),
        notes=notes,
        provenance=provenance,
        run=RunPlace(os.path.relpath(results, root), (provenance.get("configfiles") or [DEFAULT_PLACE.configfile])[-1]),
        audits=audits,
        cases=cases,
        pictures=pictures,
        withheld=[title for name, title in _titles(root, benchmarks).items() if name in withheld],
        files=_run_files(root, {"benchmarks": benchmarks, "models": [*models, *asked], "graders": graders}),
        checklists=load_checklists(folder),
        readiness=load_readiness(folder / "readiness.yaml"),
        cards={name: read_card(folder, name).forms for name in benchmarks},
        descriptions=_descriptions(results / "croissant", benchmarks),
        papers=[
            Paper(
                name=name,
                published=load_published(folder / "published" / f"{name}.yaml"),
                rows=read_table(results / "tables" / "paper" / f"{name}.csv"),
            )
            for name in papers
        ],
    )


def _tables(folder: Path) -> dict[str, list[Row]]:
    """Read all tables, with the models in their order; a leaderboard is in the order of its ranks."""
    written = read_results(folder, [*(name for name in TABLES if name not in SHAPES), *TOPICS])
    tables = {name: with_marks(rows, types_of_table(name)) for name, rows in written.items()}
    models = model_order(tables["leaderboard"])
    return {name: rows if name == "leaderboard" else in_order(rows, models) for name, rows in tables.items()}


def _read_cases(root: Path, results: Path, benchmarks: Sequence[str], most: float) -> tuple[list[CaseBlock], dict[str, str]]:
    """Read and compress the cases of one benchmark after the other, to save memory."""
    blocks, images = list[CaseBlock](), dict[str, BundleImage]()
    for name in benchmarks:
        bundles = read_records(results / "cases" / f"{name}.parquet", CaseBundle)
        blocks += case_blocks(bundles)
        images |= {image.sha256: image for bundle in bundles for image in bundle.images}
    return blocks, previews(images, root, blocks, most)


def _descriptions(folder: Path, benchmarks: Sequence[str]) -> dict[str, str]:
    paths = {name: folder / f"{name}.json" for name in benchmarks}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()}


def _titles(root: Path, benchmarks: Sequence[str]) -> dict[str, str]:
    return {name: load_benchmark(root / "config", name).title for name in benchmarks}


def _run_files(root: Path, lists: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the text of the prompt templates, and of the YAML files of the run without paths outside the project."""
    prompts = sorted((root / "config" / "prompts").rglob("*.j2"))
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in prompts}
    # only the YAML files of this run
    for kind, names in lists.items():
        for name in names:
            value = withhold_outside_paths(read_yaml(root / "config" / kind / f"{name}.yaml"))
            texts[f"config/{kind}/{name}.yaml"] = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return texts
