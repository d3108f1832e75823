"""The numbers of a run that may travel, as one tidy table with its codebook; every other format is written from it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from neuralmedbench.cards.card import CroissantConfig, read_card
from neuralmedbench.config.load import WITHHELD, read_yaml, withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.json_files import read_json
from neuralmedbench.records.items import Gold, Item, Runner, is_headline
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import FEWEST, MARK, PASS1_PATIENTS, PATIENT, with_board_names
from neuralmedbench.records.scores import CORE_DIAGNOSIS, GradeState, Key, Score, response_key
from neuralmedbench.tables.declare import Cells, Tables
from neuralmedbench.tables.outcomes import DIRECT, FULL, can_pass
from neuralmedbench.tables.release import RANKS
from neuralmedbench.tables.study import BenchmarkStudy, Study

SCHEMA_VERSION = 1
LIBRARY = "neural-medbench-pipeline"
"""Name of the pipeline as an evaluation library."""
PROVIDERS = {"gemini": "google", "vertex_ai": "google"}
"""Developers of models whose provider has another name."""
ALL = "all"
BY_PASS = ("pass1", PASS1_PATIENTS, "pass1_strict", "pass5", "all_right")
"""Rates of answers that pass, which a grader decides for free answers."""
OF_LEADERBOARD = (PASS1_PATIENTS, "pass1_strict", "calibrated")
"""Rates with an interval that only the leaderboard has."""


def column(about: str, unit: str = "") -> Any:
    """Declare a column of the tidy table: what it holds, and its unit; None is an empty cell."""
    return field(default=None, metadata={"about": about, "unit": unit})


@dataclass(frozen=True, kw_only=True)
class ReleasedScore:
    """One number of one model on one benchmark, with n, interval, grader and tier."""

    benchmark: str | None = column("Name of the benchmark in the run.")
    benchmark_title: str | None = column("Its title.")
    axis: str | None = column("depth (few hard cases), breadth (many short questions) or control.")
    model: str | None = column("Name of the model in the run; `prior` is the best constant answer.")
    model_title: str | None = column("Its title.")
    model_id: str | None = column("The model as its provider or its weights are called; empty for people and for `prior`.")
    revision: str | None = column("Revision of the model in the run.")
    baseline: bool | None = column("True for a built-in reference, which is no vision-language model.")
    reader: str | None = column("clinician for a person who answered, simulated for a program in that place.")
    in_reference_pool: bool | None = column("True if answers of the model selected the items.")
    arm: str | None = column("What of the request was shown; full is everything.")
    strategy: str | None = column("How an answer was asked for.")
    slice: str | None = column("Grouping of the items; all for every item with a reference.")
    value_of_slice: str | None = column("The group.")
    metric: str | None = column("What was measured; docs/metrics.md of the pipeline defines each.")
    value: float | None = column("The number; empty if too many answers are missing, or if it is withheld.", "1 (a rate)")
    low: float | None = column("Lower limit of the interval.", "as value")
    high: float | None = column("Upper limit of the interval.", "as value")
    interval: str | None = column("Method of the interval.")
    confidence: float | None = column("Confidence level of the interval.", "1")
    n_items: int | None = column("Items behind the number.", "items")
    n_patients: int | None = column("Independent units behind it: never compute an interval over items or answers.", "as cluster")
    cluster: str | None = column("What is counted as a patient; case, pair or item where an imported set names none.")
    expected: int | None = column("Answers that were expected.", "answers")
    missing: int | None = column("Answers missing for reasons other than the model's behaviour.", "answers")
    not_graded_fraction: float | None = column("Share of answers in a language that the grader cannot read.", "1")
    best_case: float | None = column("The number if all missing answers passed.", "as value")
    worst_case: float | None = column("The number if none of them passed.", "as value")
    grader: str | None = column("Graders whose values decide it, first to last, joined by ;. Empty: letters, labels or words are compared.")
    tier: int | None = column(
        "Group of models that corrected comparisons do not separate, 1 is the best; at pass1 of all items of ranked models."
    )
    rank: int | None = column("Rank by pass1_patients; as tier.")
    rank_low: int | None = column("Best rank that is compatible with the answers.")
    rank_high: int | None = column("Worst rank that is compatible with them.")
    withheld: str | None = column(
        "Why the numbers of the row are empty: about too few patients, or hidden so that such a number cannot be derived."
    )
    note: str | None = column("A remark on the number.")


@dataclass(frozen=True)
class ScoredAnswer:
    """One answer to one item under the arm full, asked directly, with its score."""

    item: Item
    gold: Gold
    score: Score
    response: Response

    @property
    def question(self) -> str:
        """Text of the question as the item has it: the case, then what is asked; pictures are not in it."""
        return "\n\n".join(part for part in (self.item.notes, self.item.record, self.item.question) if part)

    @property
    def references(self) -> list[str]:
        """Reference answer: the letter of the right option, the values of a structured item, else the diagnosis and its other names."""
        if self.item.runner is Runner.CHOICE:
            return [self.gold.choice]
        if self.gold.values:
            return [f"{value.field}: {value.value}" for value in self.gold.values]
        return [self.gold.answer, *self.gold.aliases]

    @property
    def extracted(self) -> str:
        """What was read out of the answer: its first candidate, or its fields as JSON; empty if nothing was."""
        if self.score.differential:
            return self.score.differential[0]
        return json.dumps(self.score.fields, ensure_ascii=False, sort_keys=True) if self.score.fields else ""

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Role and text of every message of a dialogue; empty for a single answer."""
        asked, told = self.item.turns, self.response.turns
        if len(told) < 2 or len(asked) < len(told):
            return []
        users = ("\n\n".join(filter(None, (turn.reveal, turn.question))) for turn in asked)
        return [message for user, text in zip(users, told, strict=False) for message in (("user", user), ("assistant", text))]


@dataclass(frozen=True)
class ReleasedRun:
    """What may be handed on of a run.

    Attributes
    ----------
    study : Study
        The run.
    scores : list of ReleasedScore
        Its released numbers.
    provenance : dict
        `provenance.json`.
    cards : dict of str to CroissantConfig
        Address, licence and makers of each benchmark, as far as its card states them.
    citation : dict
        `CITATION.cff`.
    date : datetime.date
        Last day on which a model was called; without any, the day on which provenance was recorded.
    """

    study: Study
    scores: list[ReleasedScore]
    provenance: dict[str, Any]
    cards: dict[str, CroissantConfig]
    citation: dict[str, Any]
    date: datetime.date

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.provenance["run"])

    @property
    def title(self) -> str:
        """One line about the run."""
        return f"{self.citation['title']}: results of the run {self.name}"

    @property
    def commit(self) -> str:
        """Commit of the code that made the numbers, and whether it had been changed since."""
        known = self.provenance["commit"]
        return f"{known}{' with changes' if self.provenance['dirty'] else ''}" if known else "not known: outside of a git repository"

    @property
    def warning(self) -> str:
        """What a reader must know first: whether any number is about patients."""
        phantoms = [one.config.title for one in self.study.benchmarks.values() if one.config.subjects == "phantom"]
        return f"Simulated patients, no number is about patients: {'; '.join(phantoms)}." if phantoms else ""

    @cached_property
    def _by_model(self) -> dict[tuple[str, str], list[ReleasedScore]]:
        found: dict[tuple[str, str], list[ReleasedScore]] = {}
        for row in self.scores:
            if row.slice == ALL and row.value is not None:
                found.setdefault((row.benchmark or "", row.model or ""), []).append(row)
        return found

    def numbers(self, benchmark: str, model: str) -> list[ReleasedScore]:
        """Return the numbers of a model over all items, under every arm, that are known and not withheld."""
        return self._by_model.get((benchmark, model), [])

    @property
    def models(self) -> Iterator[tuple[BenchmarkStudy, ModelConfig]]:
        """Benchmarks with their models: people are none."""
        for benchmark in self.study.benchmarks.values():
            yield from ((benchmark, model) for model in self.study.models.values() if not model.reader)

    def answers(self, benchmark: BenchmarkStudy, model: str) -> list[ScoredAnswer]:
        """Return the scored answers behind pass@1, by item and repeat; none of a benchmark that is private."""
        if not may_travel(benchmark):
            return []
        items = {item.item_id: item for item in benchmark.items}
        gold = {row.item_id: row for row in benchmark.gold}
        responses = {response_key(row): row for row in benchmark.responses[model]}
        rows = sorted((row for row in benchmark.scores[model] if is_headline(row)), key=lambda row: (row.item_id, row.repeat))
        return [
            ScoredAnswer(items[row.item_id], gold[row.item_id], row, responses[response_key(row)])
            for row in rows
            if row.item_id in gold and can_pass(items[row.item_id], gold[row.item_id])
        ]


def model_id(model: ModelConfig) -> tuple[str, str]:
    """Return developer and name of a model in the form of the Hugging Face hub; `unknown` where the id names no developer.

    A built-in baseline is ours. The first word of the id of a server of one's own (`api_base`) is a protocol, and a path is no developer.
    """
    known = withhold_outside_paths(model.id)
    if model.backend == "builtin" or known == WITHHELD:
        return LIBRARY if model.backend == "builtin" else "unknown", model.name
    parts = [part for part in known.split("/") if part][bool(model.api_base) :] or [model.name]
    is_path = model.backend in {"transformers", "server"} and (len(parts) > 2 or known.startswith("."))
    developer = "unknown" if len(parts) == 1 or is_path else parts[-2]
    return PROVIDERS.get(developer, developer), parts[-1]


def may_travel(benchmark: BenchmarkStudy) -> bool:
    """Return True if single questions and answers of a benchmark may be handed on: it is not private, and about no patient of the site."""
    return not benchmark.config.private and benchmark.audit.kind != PATIENT


def released_run(root: Path, study: Study, tables: Tables, provenance: Path) -> ReleasedRun:
    """Gather what may be handed on of a run.

    Parameters
    ----------
    root : Path
        The repository root.
    study : Study
        The run.
    tables : dict of str to list of dict
        Its tables as a public page shows them (`tables.write.released_tables`).
    provenance : Path
        `provenance.json` of the run.

    Returns
    -------
    ReleasedRun
        The numbers and what belongs to them.

    Raises
    ------
    ConfigError, DataError
        If the run is limited, or a card or `CITATION.cff` cannot be read.
    """
    if study.limit:
        message = f"a run limited to {study.limit} answers is no result, so nothing is exported; run the configuration without `limit`"
        raise ConfigError(message)
    if not (root / "CITATION.cff").is_file():
        message = "CITATION.cff is not there, and exports name its authors; bring it back (`git checkout CITATION.cff`)"
        raise DataError(message)
    recorded = read_json(provenance)
    days = [one["last_called_on"] for one in recorded["models"] if one["last_called_on"]]
    made = datetime.datetime.fromtimestamp(provenance.stat().st_mtime, datetime.UTC).date()
    return ReleasedRun(
        study=study,
        scores=released_scores(study, tables),
        provenance=recorded,
        cards={name: read_card(root / "config", name).croissant for name in study.benchmarks},
        citation=read_yaml(root / "CITATION.cff"),
        date=datetime.date.fromisoformat(max(days)) if days else made,
    )


def released_scores(study: Study, tables: Tables) -> list[ReleasedScore]:
    """Return the rows of topic `rates`, and the rates of the leaderboard that it lacks, as rows of the tidy table."""
    board = {(row["benchmark"], row["model"]): row for row in tables["leaderboard"]}
    deciding = {
        (name, model, key): graders
        for name, benchmark in study.benchmarks.items()
        for model in study.models
        for key, graders in _deciding_graders(study, benchmark, model).items()
    }
    rows = []
    for row in [*map(_of_rates, tables["rates"]), *_of_leaderboard(tables["leaderboard"])]:
        model, key = board.get((row["benchmark"], row["model"]), {}), (row["arm"], row["strategy"])
        first = (row["metric"], row["slice"], key) == ("pass1", ALL, (FULL, DIRECT))
        grader = deciding.get((row["benchmark"], row["model"], key), "") if row["metric"] in BY_PASS else _graders_of_metric(study, row)
        rows.append(_score(study, row, model, ranked=first, grader=grader))
    return rows


def _of_rates(row: Cells) -> Cells:
    return with_board_names(row) | {"metric": row["measure"]}


def _of_leaderboard(board: Sequence[Cells]) -> Iterator[Cells]:
    part = {"arm": FULL, "strategy": DIRECT, "slice": ALL, "value_of_slice": ALL}
    for row in board:
        # what the leaderboard says of pass@1 alone is left out
        same = {name: cell for name, cell in row.items() if name not in {*RANKS, "interval", "best_case", "worst_case", "note"}}
        for name in OF_LEADERBOARD:
            if row.get(name) is not None:
                yield same | part | {"metric": name, "value": row[name], "low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}


def _score(study: Study, row: Cells, board: Cells, *, ranked: bool, grader: str) -> ReleasedScore:
    benchmark, model = study.benchmarks[row["benchmark"]], study.models.get(row["model"])
    names = {entry.name for entry in fields(ReleasedScore)}
    mark = next((cell for cell in row.values() if isinstance(cell, str) and MARK.fullmatch(cell)), None)
    if mark is None and row.get("few_patients") and row.get("value") is None:
        mark = f"<{FEWEST} patients"
    cells = {name: None if mark and cell == mark else cell for name, cell in row.items() if name in names}
    known = cells.get("value") is not None
    return ReleasedScore(
        **cells
        | {
            "benchmark_title": benchmark.config.title,
            "axis": str(benchmark.config.axis),
            "model_title": board.get("title"),
            "model_id": withhold_outside_paths(model.id) if model and not model.reader else None,
            "revision": board.get("revision"),
            "baseline": board.get("baseline"),
            "reader": board.get("reader"),
            "confidence": study.settings.confidence if known and cells.get("low") is not None else None,
            "cluster": cells.get("cluster") or benchmark.cluster,
            "grader": grader or None,
            "withheld": mark,
            **({name: board.get(name) for name in RANKS} if ranked and known else {}),
        }
    )


def _deciding_graders(study: Study, benchmark: BenchmarkStudy, model: str) -> dict[tuple[str, str], str]:
    """Return by arm and strategy the graders whose verdict counts for some answer: the first of the run list that gave one."""
    decided: set[Key] = set()
    found: dict[tuple[str, str], list[str]] = {}
    for grader in study.graders:
        own = {
            response_key(grade)
            for grade in study.used_grades(benchmark.name, model, grader)
            if grade.criterion == CORE_DIAGNOSIS and grade.state is GradeState.OK
        }
        for arm, strategy in sorted({(key[1], key[2]) for key in own - decided}):
            found.setdefault((arm, strategy), []).append(grader)
        decided |= own
    return {key: ";".join(graders) for key, graders in found.items()}


def _graders_of_metric(study: Study, row: Cells) -> str:
    if row["metric"] == "calibrated":
        return "clinicians"
    judged = row["metric"] == "rubric"
    return ";".join(name for name, grader in study.graders.items() if judged and (grader.kind, grader.task) == ("llm", "rubric"))


def counts_of(row: ReleasedScore) -> Mapping[str, str]:
    """Return n, interval, grader and rank of a number as text by name, for formats that have no field of their own for them."""
    names = (
        "n_items",
        "n_patients",
        "cluster",
        "expected",
        "missing",
        "interval",
        "confidence",
        "grader",
        "tier",
        "rank",
        "rank_low",
        "rank_high",
    )
    return {name: str(value) for name in names if (value := getattr(row, name)) is not None}
