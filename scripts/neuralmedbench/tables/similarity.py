"""Similarity of words, and how well it separates right from wrong diagnoses: `similarity.csv`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neuralmedbench.estimates.concordance import separation
from neuralmedbench.estimates.intervals import ByPatient
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Level
from neuralmedbench.records.scores import Score, SimilarityRow, response_key
from neuralmedbench.records.words import counted
from neuralmedbench.scoring.matching import RIGHT
from neuralmedbench.scoring.similarity import PACKAGES, comparable_responses
from neuralmedbench.tables.clinicians.opinions import RATERS
from neuralmedbench.tables.declare import ALL, MODEL, REPEATABLE, SCORED, Suppression, Table
from neuralmedbench.tables.grader_vs_clinician import METRICS, RESPONSE, trust_rows
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, MeasureRow, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway

NOT_COMPUTED = f"not computed: {' and '.join(PACKAGES)} were not installed where answers were compared, or `similarity.encoder` is empty"
DESCRIPTIVE = "descriptive: similar words are not a right diagnosis"

Pair = tuple[Score, SimilarityRow]


@dataclass(frozen=True, kw_only=True)
class SimilarityTableRow(ModelRow):
    """One measure of similarity of one model's answers, over all levels or one."""

    level: str | None = None
    metric: str | None = None
    mean: float | None = None
    n: int | None = None
    auc_vs_vocabulary: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    auc_n: int | None = None
    auc_vs_clinicians: float | None = None
    auc_vs_clinicians_low: float | None = None
    auc_vs_clinicians_high: float | None = None
    n_rated: int | None = None
    note: str | None = None


def similarity_rows(study: Study) -> list[SimilarityTableRow]:
    """Rows of `similarity.csv`: mean similarity, and how well it separates same from other diagnoses by the vocabulary.

    A similarity of another text than the scored one is stale and left out. Answers with an abbreviation that the vocabulary expanded count in
    the mean but not in the area: texts that the vocabulary made equal cannot show that the encoder agrees with it. Without an encoder
    nothing is computed: then each measure has a row that says so, without a mean.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        rows += _not_computed(benchmark)
        near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
        for model, scores in benchmark.scores.items():
            keys = [(row, (response_key(row), row.text_sha256)) for row in headline(scores)]
            pairs = [(row, near[key]) for row, key in keys if key in near]
            for level, part in _by_level(pairs).items():
                rows += [_similarity_row(study, benchmark.name, model, metric, part) | {"level": level} for metric in METRICS]
    return [SimilarityTableRow(**row) for row in rows if row["n"] or row["note"] == NOT_COMPUTED]


def _not_computed(benchmark: BenchmarkStudy) -> list[Cells]:
    """Return rows without a mean if answers could be compared and none was: every compared answer has a row of its own, also an empty one."""
    items, gold = {row.item_id: row for row in benchmark.items}, {row.item_id: row for row in benchmark.gold}
    models = (
        [model for model, rows in benchmark.responses.items() if comparable_responses(rows, items, gold)]
        if not benchmark.similarity
        else []
    )
    cells = {"benchmark": benchmark.name, "level": ALL, "n": 0, "note": NOT_COMPUTED}
    return [{**cells, "model": model, "metric": metric} for model in models for metric in METRICS]


def _by_level(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """All answers, then those of each level, also when there is only one: the papers report similarity by level."""
    levels = sorted({score.level for score, _ in pairs} - {Level.NONE})
    return {"all": pairs, **{level: [pair for pair in pairs if pair[0].level == level] for level in levels}}


def _similarity_row(study: Study, benchmark: str, model: str, metric: str, pairs: list[Pair]) -> Cells:
    known = [(score, near) for score, near in pairs if getattr(near, metric) is not None]
    # expanded abbreviations, and answers that the vocabulary cannot read, count in the mean, not in the area
    own = [(score, near) for score, near in known if not near.expanded and not score.other_language]
    row: Cells = {"benchmark": benchmark, "model": model, "metric": metric, "n": len(known), "auc_n": len(own), "note": DESCRIPTIVE}
    if not known:
        return row
    row["mean"] = float(np.mean([getattr(near, metric) for _, near in known]))
    values = np.array([getattr(near, metric) for _, near in own], dtype=np.float64)
    same = np.array([score.relation in RIGHT for score, _ in own], dtype=bool)
    auc, low, high = separation(values, same, ByPatient([score.patient_id for score, _ in own], study.settings))
    return row | {"auc_vs_vocabulary": auc, "auc_low": low, "auc_high": high}


def similarity_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how badly similarity of words separates a right diagnosis from a wrong one."""
    rows = [row for row in tables["similarity"] if row["level"] == "all"]
    n = counted(sum(row["n"] for row in rows if row["metric"] == rows[0]["metric"]), "answer") if rows else "0 answers"
    measured = [row for row in rows if row["auc_vs_clinicians"] is not None]
    if measured:
        row = min(measured, key=lambda row: (row["auc_vs_clinicians"], row["model"]))
        text = f"Likeness of words separates what clinicians pass with an area of {row['auc_vs_clinicians']:.2f} at worst; 0.50 is chance."
        return Takeaway(text, n)
    if not rows:
        return Takeaway("No similarity was measured in this run.", n)
    if all(row["note"] == NOT_COMPUTED for row in rows):
        return Takeaway(f"Similarity was {NOT_COMPUTED}.", n)
    return Takeaway("Descriptive, never a verdict: no clinician has rated an answer that it could be held against.", n)


def with_clinicians(rows: list[SimilarityTableRow], trust: list[MeasureRow]) -> list[SimilarityTableRow]:
    """Add to the rows over all levels how well each measure separates the answers that clinicians pass; simulated raters never count."""
    of_clinicians = [row for row in trust if (row.measure, row.slice, row.value_of_slice) == ("auc", RESPONSE, RATERS[False])]
    areas = {(row.benchmark, row.model, row.source): row for row in of_clinicians}
    return [_with_area(row, areas.get((row.benchmark, row.model, row.metric or ""))) if row.level == "all" else row for row in rows]


def _with_area(row: SimilarityTableRow, area: MeasureRow | None) -> SimilarityTableRow:
    if area is None:
        return replace(row, n_rated=0)
    return replace(
        row, auc_vs_clinicians=area.value, auc_vs_clinicians_low=area.low, auc_vs_clinicians_high=area.high, n_rated=area.n_answers
    )


def _labels(row: Cells) -> list[Label]:
    return [] if row["level"] == ALL else [(f"{REPEATABLE} level", row["level"]), (f"{SCORED} level", row["level"])]


TABLE = Table(
    name="similarity",
    row=SimilarityTableRow,
    rows=lambda results: with_clinicians(similarity_rows(results.study), results.once(trust_rows)),
    suppression=Suppression(f"{MODEL} level metric note", mark="n", patients="", labels=_labels),
    takeaways={"similarity": similarity_takeaway},
)
