"""Similarity of words, and how well it separates right from wrong diagnoses: topic `similarity`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from neuralmedbench.estimates.calibration import auroc_interval
from neuralmedbench.estimates.intervals import ByPatient
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Level
from neuralmedbench.records.scores import Score, SimilarityRow, response_key
from neuralmedbench.scoring.matching import RIGHT
from neuralmedbench.scoring.similarity import PACKAGES, comparable_responses
from neuralmedbench.tables.clinicians.opinions import RATERS
from neuralmedbench.tables.declare import REPEATABLE, SCORED, Cells, Measure, MeasureRow, ModelRows, ends_of, needs, topic
from neuralmedbench.tables.grader_vs_clinician import METRICS, RESPONSE, trust_rows
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

NOT_COMPUTED = f"not computed: {' and '.join(PACKAGES)} were not installed where answers were compared, or `similarity.encoder` is empty"
DESCRIPTIVE = "descriptive: similar words are not a right diagnosis"

SIMILARITY, OF_VOCABULARY, OF_CLINICIANS = "similarity", "auc_vs_vocabulary", "auc_vs_clinicians"
"""The measures."""

Pair = tuple[Score, SimilarityRow]


@needs(trust_rows)
def similarity_rows(study: Study, trust: Iterable[MeasureRow] = ()) -> list[MeasureRow]:
    """Likeness of the words of answers and references, and what it says of a diagnosis.

    A similarity of another text than the scored one is stale and left out. Answers with an
    abbreviation that the vocabulary expanded count in the mean but not in the area: texts that the
    vocabulary made equal cannot show that the encoder agrees with it. Without an encoder nothing is
    computed: then each metric has a row that says so, without a value.
    """
    areas = [row for row in trust if (row.measure, row.slice, row.value_of_slice) == ("auc", RESPONSE, RATERS[False])]
    of_clinicians = {(row.benchmark, row.model, row.source): row for row in areas}
    rows: list[MeasureRow] = []
    for benchmark in study.benchmarks.values():
        rows += _not_computed(study, benchmark)
        near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
        for model, scores in benchmark.scores.items():
            made = ModelRows("similarity", study, benchmark, model)
            keys = [(row, (response_key(row), row.text_sha256)) for row in headline(scores)]
            pairs = [(row, near[key]) for row, key in keys if key in near]
            for metric in METRICS:
                rows += _metric_rows(made, metric, pairs, of_clinicians.get((benchmark.name, model, metric)))
    return rows


def _not_computed(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow]:
    """Yield rows without a value if answers could be compared and none was: every compared answer has a record, also an empty one."""
    if benchmark.similarity:
        return
    items, gold = {row.item_id: row for row in benchmark.items}, {row.item_id: row for row in benchmark.gold}
    for model, responses in benchmark.responses.items():
        if comparable_responses(responses, items, gold):
            made = ModelRows("similarity", study, benchmark, model)
            yield from (made.plain(SIMILARITY, source=metric, n_answers=0, note=NOT_COMPUTED) for metric in METRICS)


def _metric_rows(made: ModelRows, metric: str, pairs: Sequence[Pair], of_clinicians: MeasureRow | None) -> Iterator[MeasureRow]:
    known = [pair for pair in pairs if getattr(pair[1], metric) is not None]
    # all answers, then those of each level, also when there is only one: the papers report similarity by level
    levels = sorted({score.level for score, _ in known} - {Level.NONE})
    parts = {"": known} | {str(level): [pair for pair in known if pair[0].level == level] for level in levels}
    for level, part in parts.items():
        cells: Cells = {"slice": "level" if level else "", "value_of_slice": level, "source": metric, "note": DESCRIPTIVE}
        if part:
            mean = float(np.mean([getattr(near, metric) for _, near in part]))
            yield made.plain(SIMILARITY, value=mean, **_sizes(part), **cells)
        # expanded abbreviations, and answers that the vocabulary cannot read, count in the mean, not in the area
        own_words = [(score, near) for score, near in part if not near.expanded and not score.other_language]
        if own_words:
            values = np.array([getattr(near, metric) for _, near in own_words], dtype=np.float64)
            same = np.array([score.relation in RIGHT for score, _ in own_words], dtype=bool)
            by = ByPatient([score.patient_id for score, _ in own_words], made.study.settings)
            area = ends_of(auroc_interval(values, same.astype(np.float64), by))
            yield made.plain(OF_VOCABULARY, **area, **_sizes(own_words), **cells)
        if part and not level and of_clinicians:
            # its patients decide whether a public run shows it, here as in the topic of graders
            same_cells = {name: of_clinicians[name] for name in ("value", "low", "high", "n_answers", "n_patients")}
            yield made.plain(OF_CLINICIANS, **same_cells, **cells)


def _sizes(pairs: Sequence[Pair]) -> Cells:
    patients = {score.patient_id for score, _ in pairs}
    return {"n_answers": len(pairs), "n_items": len({score.item_id for score, _ in pairs}), "n_patients": len(patients)}


def _labels(row: Cells) -> list[Label]:
    level = row["value_of_slice"]
    return [(f"{REPEATABLE} level", level), (f"{SCORED} level", level)] if level else []


MEASURES = (
    Measure(
        SIMILARITY,
        "Similarity",
        "Mean likeness of the words of answer and reference (`source`: cosine or BERTScore).",
        "number",
    ),
    Measure(
        OF_VOCABULARY,
        "AUROC, vocabulary",
        "Chance that a diagnosis that is right by the vocabulary is more similar to the reference than a wrong one.",
        "number",
    ),
    Measure(
        OF_CLINICIANS,
        "AUROC, clinicians",
        "Chance that an answer which clinicians pass is more alike than one which they do not.",
        "number",
    ),
)

TABLE = topic("similarity", similarity_rows, MEASURES, labels=_labels)
