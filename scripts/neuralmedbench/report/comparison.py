"""The page that compares two finished runs, or two revisions of one: read from their files, computed by `tables`, rendered like the report."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from neuralmedbench.config.load import load_benchmark, load_pipeline, withhold_outside_paths
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.workflow import merged_config
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.figures.style import looks
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.files.tables import read_table, write_table
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.results import CLUSTER_MARKS
from neuralmedbench.records.words import counted
from neuralmedbench.report.cases import pack_bytes
from neuralmedbench.report.elements import TEMPLATES
from neuralmedbench.report.page import STYLE, shape_of, templates
from neuralmedbench.report.source import with_marks
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.two_runs import (
    Audience,
    ChangedItemRow,
    RunComparison,
    RunDifferenceRow,
    Sides,
    compare_runs,
    comparison_answer,
    read_sides,
)

FOLDER = "compare"
"""Folder of the pages below `results/`; no run has this name."""
SCRIPTS = ("page.js", "reading.js")
WORDS = ("item", "gold", "arm", "strategy", "sample", "family", "pass@1", "interval", "missing")
"""Words of the glossary that this page uses."""
DIGEST, SHA256 = 12, 64
"""Digits of a digest that are shown, and all of them."""
FACTS = {"topic": "str", "name": "str", "a": "str", "b": "str", "same": "bool"}
Json = dict[str, Any]


def _types(row: type) -> dict[str, str]:
    return {one.name: str(one.type).removesuffix(" | None") for one in fields(row)}


DIFFERENCES = _types(RunDifferenceRow) | CLUSTER_MARKS
CHANGED = _types(ChangedItemRow)


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the two runs: its name, folder, day of its report, configuration files, provenance, settings as its files are now, and its tables.

    `settings` is None where a configuration file is not here any more.
    """

    name: str
    results: Path
    made: str
    configfiles: tuple[str, ...]
    provenance: Json
    settings: PipelineConfig | None
    verdict: Json
    board: list[dict[str, str]]

    @property
    def config(self) -> PipelineConfig:
        """Its settings, or the defaults where they are not known."""
        return self.settings or PipelineConfig.model_construct(benchmarks=(), models=())

    @property
    def public(self) -> bool:
        """True if its own report is a public one."""
        disclosure = read_json(self.results / "tables" / "notes.json").get("disclosure")
        return bool(disclosure) or self.config.report.profile == "public"

    @property
    def notices(self) -> list[str]:
        """What its own report warns of: badges, missing answers, and that it was limited."""
        warned = [f"{one['name']}: {one['text']}" for one in self.verdict.get("badges", []) if one["state"] == "warn"]
        return [*(["a limited run of few answers, without a rank"] if self.provenance.get("limited") else []), *warned]


def read_compared_run(root: Path, name: str, results: Path, made: str) -> ComparedRun:
    """Read what the files of a finished run say about it, apart from its scores."""
    provenance = read_json(results / "provenance.json")
    names = tuple(provenance.get("configfiles", ()))
    paths = [root / one for one in names]
    known = all(path.is_file() for path in paths)
    return ComparedRun(
        name=name,
        results=results,
        made=made,
        configfiles=names,
        provenance=provenance,
        settings=load_pipeline(merged_config(paths, root / "config")) if known else None,
        verdict=read_json(results / "tables" / "verdict.json"),
        board=read_table(results / "tables" / "leaderboard.csv"),
    )


def write_comparison(
    root: Path, a: ComparedRun, b: ComparedRun, *, pairs: Sequence[str] = (), despite: Collection[str] = ()
) -> tuple[Path, str]:
    """Compare two finished runs and write tables and page.

    Parameters
    ----------
    root : Path
        The repository root.
    a, b : ComparedRun
        The runs; differences are the second minus the first.
    pairs : sequence of str
        `old=new`, or `old@revision=new@revision`: a model of the first run and the one of the second that it is compared with.
    despite : collection of str
        Pair items although their `questions` or `references` differ.

    Returns
    -------
    page : Path
        The page, `results/compare/<a>--<b>.html`; its tables lie in the folder of that name.
    answer : str
        Its first sentence.

    Raises
    ------
    ConfigError
        If a pair names a model that its run does not have.
    DataError
        If a file of a run is absent or does not match its record.
    """
    named, revisions = _pairs(pairs, a, b)
    models = [list(run.provenance["models"]) for run in (a, b)]
    if a == b:  # of one run only the named models or revisions
        models = [[entry for entry in models[0] if entry["model"] in names] for names in (named, named.values())]
    stored = read_sides(a.name, a.results, models[0], revisions[0]), read_sides(b.name, b.results, models[1], revisions[1])
    kinds = _subjects(root, stored)
    patients = frozenset(name for name, kind in kinds.items() if kind == "patient")
    audience = Audience(a.public or b.public, max(run.config.report.min_patients_shown for run in (a, b)), patients)
    vocabulary, settings = read_vocabulary(root / b.config.vocabulary), IntervalSettings(**b.config.statistics.model_dump())
    found = compare_runs(stored[0], stored[1], vocabulary, settings, pairs=named, despite=despite, audience=audience)
    titles, clusters = _titles(root, a, b, kinds), {row["benchmark"]: row["cluster"] for row in (*a.board, *b.board)}
    # everything that the page shows stands in a table beside it
    page = root / "results" / FOLDER / f"{a.name}--{b.name}.html"
    folder = page.with_suffix("")
    rows = [
        {name: cell for name, cell in row.items() if name != "mark"} | {"cluster": clusters.get(row["benchmark"])}
        for row in found.differences
    ]
    write_table(folder / "differences.csv", rows, DIFFERENCES)
    write_table(folder / "changed_items.csv", found.changed, CHANGED)
    write_table(folder / "runs.csv", list(run_facts(a, b)), FACTS)
    answer = comparison_answer(found, titles, clusters)
    context = _context(page, (a, b), found, titles) | {
        "answer": answer,
        "audience": audience,
        "phantoms": [titles[name] for name, kind in kinds.items() if kind == "phantom"],
        "withheld": [titles[name] for name in sorted(patients)] if audience.public else [],
        "despite": sorted(despite),
        "unpaired": list(_unpaired((a.name, b.name), stored, named)),
    }
    scripts = [TEMPLATES / name for name in SCRIPTS]
    write_text(page, render_page(TEMPLATES / "comparison.html.j2", context, styles=[STYLE], scripts=scripts, environment=templates({})))
    return page, answer


def _pairs(pairs: Sequence[str], a: ComparedRun, b: ComparedRun) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the names of paired models, and the revisions that each run is asked for."""
    named, revisions = dict[str, str](), [dict[str, str](), dict[str, str]()]
    for pair in pairs:
        sides = [side.partition("@") for side in pair.split("=")]
        if len(sides) != 2 or not all(side[0] for side in sides):
            message = f"{pair}: a pair is OLD=NEW, names of models, each with @REVISION if it is not the present one"
            raise ConfigError(message)
        for (model, _, revision), run, own in zip(sides, (a, b), revisions, strict=True):
            known = sorted({entry["model"] for entry in run.provenance["models"]})
            if model not in known:
                message = f"{pair}: the run {run.name} has no model {model}; it has {', '.join(known)}"
                raise ConfigError(message)
            if revision:
                own[model] = revision
        named[sides[0][0]] = sides[1][0]
    return named, revisions


def _subjects(root: Path, stored: Iterable[Sides]) -> dict[str, str]:
    """Return the kind of subjects of each benchmark by its audit; patients where the audit is not here."""
    names = dict.fromkeys(benchmark for run in stored for benchmark, _ in run)
    audits = {name: root / "data" / "deidentified" / name / "audit.json" for name in names}
    return {name: str(read_audit(path).kind) if path.is_file() else "patient" for name, path in audits.items()}


def _titles(root: Path, a: ComparedRun, b: ComparedRun, benchmarks: Iterable[str]) -> dict[str, str]:
    titles = {row["model"]: row["title"] for row in (*a.board, *b.board) if row["title"]}
    here = {name: (root / "config" / "benchmarks" / f"{name}.yaml").is_file() for name in benchmarks}
    return titles | {name: load_benchmark(root / "config", name).title if known else name for name, known in here.items()}


def _unpaired(names: tuple[str, str], stored: tuple[Sides, Sides], named: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences on what stands in one run only."""
    a, b = stored
    partners = [(benchmark, named.get(model, model)) for benchmark, model in a]
    alone = [key for key, partner in zip(a, partners, strict=True) if partner not in b], [key for key in b if key not in partners]
    for name, keys in dict(zip(names, alone, strict=True)).items():
        for benchmark in dict.fromkeys(key[0] for key in keys):
            yield f"Only in {name}: {', '.join(model for one, model in keys if one == benchmark)} on {benchmark}."


def run_facts(a: ComparedRun, b: ComparedRun) -> Iterator[Json]:
    """Yield what is known of both runs, one fact a row: from their provenance, and their settings as their configuration files are now."""
    sides = [dict(_facts(run)) for run in (a, b)]
    for topic, name in dict.fromkeys([*sides[0], *sides[1]]):
        first, second = (side.get((topic, name), "") for side in sides)
        yield {"topic": topic, "name": name, "a": first, "b": second, "same": first == second}


def _facts(run: ComparedRun) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield topic and name of each fact of a run, with its value."""
    facts: Json = {"report": {"made": run.made}, **run.provenance}
    facts["settings"] = withhold_outside_paths(run.settings.model_dump(mode="json")) if run.settings else {}
    facts["models"] = {
        f"{entry['model']} on {entry['benchmark']}": entry | {"served": [served["name"] for served in entry["served"]]}
        for entry in run.provenance["models"]
    }
    facts["inputs"] = {path: digest for path, digest in facts["inputs"].items() if path.startswith(("config/", "data/"))}
    for topic, value in facts.items():
        for name, leaf in _leaves(value):
            yield (topic if name else "run", name or topic), leaf[:DIGEST] if len(leaf) == SHA256 else leaf


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _leaves(entry, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))
    else:
        yield name, "" if value is None else str(value)


def _context(page: Path, runs: tuple[ComparedRun, ComparedRun], found: RunComparison, titles: Mapping[str, str]) -> Json:
    folder = page.with_suffix("")
    reports = [os.path.relpath(run.results / "report.html", page.parent) for run in runs]
    differences = with_marks(read_table(folder / "differences.csv"), DIFFERENCES)
    models = sorted({row[name] for row in differences for name in ("model", "model_b")})
    return {
        "title": f"{runs[0].name} and {runs[1].name}: Neural-MedBench",
        "here": folder.name,
        "runs": runs,
        "report_links": list(zip((Path(path).as_posix() for path in reports), runs, strict=True)),
        "differences": differences,
        "changed": read_table(folder / "changed_items.csv"),
        "facts": read_table(folder / "runs.csv"),
        "hidden": found.hidden,
        "alpha": found.alpha,
        "titles": titles,
        "looks": {name: shape_of(look) for name, look in looks(models).items()},
        "folder": Path("results", FOLDER, folder.name).as_posix(),
        "csv": {name: pack_bytes((folder / f"{name}.csv").read_bytes()) for name in ("differences", "changed_items", "runs")},
        "words": WORDS,
        "of": lambda number, noun: counted(int(number), noun),
    }
