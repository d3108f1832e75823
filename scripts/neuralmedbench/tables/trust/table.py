"""`grader_vs_clinician.csv`: how well graders and similarity follow clinicians, beside how well clinicians follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import Interval, codes_of
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.axes import MODELS_FOR_A_CORRELATION
from neuralmedbench.tables.clinicians.rated import Opinions, grades_of, opinions_of
from neuralmedbench.tables.descriptive import METRICS, headline
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.trust.concordance import COEFFICIENTS, Pairs, concordance, concordance_of_units, means_of_units
from neuralmedbench.tables.trust.makers import same_maker

CLINICIAN = "clinician"
"""The judge of the ceiling: one clinician against another."""

FEWEST_UNITS = MODELS_FOR_A_CORRELATION
"""Answers, items or models that a coefficient needs, as a correlation over models does elsewhere; a mean difference needs one. (Our rule.)"""

Row = dict[str, Any]


@dataclass(frozen=True)
class _Judge:
    """Whose values are held against clinicians: a grader, a measure of similarity, or another clinician; and its coefficients."""

    name: str
    kind: str
    values: Mapping[Key, float]
    wanted: tuple[str, ...]


def trust_rows(study: Study) -> list[Row]:
    """Rows of `grader_vs_clinician.csv`.

    Parameters
    ----------
    study : Study
        The run; answers to the arm full under the strategy direct, each as often as it was rated but with the weight of one, as drawn: the
        table is about these answers, and not weighted for the draw.

    Returns
    -------
    list of dict
        By benchmark, judge, and level: `response` (all models, then each), `item` and `model` (means). Simulated raters in rows of
        their own.
    """
    rows = []
    for simulated in (False, True):
        opinions = opinions_of(study, simulated=simulated)
        for benchmark in study.benchmarks.values():
            scores = [row for table in benchmark.scores.values() for row in headline(table) if response_key(row) in opinions]
            for judge in _judges(study, benchmark, scores, opinions):
                rows += [
                    {"benchmark": benchmark.name, "judge": judge.name, "kind": judge.kind} | row | {"simulated": simulated}
                    for row in _rows_of_judge(study, judge, scores, opinions)
                ]
    return rows


def with_clinicians(similarity: list[Row], trust: list[Row]) -> list[Row]:
    """Add to the rows of `similarity.csv` over all levels how well each measure tells what clinicians pass; simulated raters never."""
    found = {
        (row["benchmark"], row["model"], row["judge"]): row
        for row in trust
        if row["level"] == "response" and row["kind"] == "similarity" and not row["simulated"]
    }
    rows = []
    for entry in similarity:
        row = dict(entry)
        if row["level"] == "all":
            own = found.get((row["benchmark"], row["model"], row["metric"]), {})
            row |= {f"auc_vs_clinicians{end}": own.get(f"auc{end}") for end in ("", "_low", "_high")} | {"n_rated": own.get("n", 0)}
        rows.append(row)
    return rows


def _judges(study: Study, benchmark: BenchmarkStudy, scores: Sequence[Score], opinions: Mapping[Key, Opinions]) -> Iterator[_Judge]:
    passes = study.form.passes
    if not scores or passes is None:
        return
    axis = study.form.axes[passes.axis]
    every = tuple(name for name in COEFFICIENTS if name != "kappa")
    for grader in study.all_graders:
        values = {key: value for model in study.models for key, value in grades_of(benchmark, model, grader, scores).items()}
        steps = np.array(list(values.values())) * (axis.highest - axis.lowest)
        # kappa is of the points of a scale: a grader between them has none
        wanted = COEFFICIENTS if np.allclose(steps, steps.round(), atol=1e-9) else every
        yield _Judge(grader, "grader", values, wanted)
    near = {(response_key(row), row.text_sha256): row for row in benchmark.similarity}
    for metric in METRICS:
        found = {response_key(row): near.get((response_key(row), row.text_sha256)) for row in scores}
        known = {key: getattr(row, metric) for key, row in found.items() if row is not None and getattr(row, metric) is not None}
        yield _Judge(metric, "similarity", known, ("pearson", "spearman", "auc"))
    several = {key: 0.0 for key, one in opinions.items() if len(one.values) > 1}
    yield _Judge(CLINICIAN, CLINICIAN, several, tuple(name for name in COEFFICIENTS if name != "bias"))


def _rows_of_judge(study: Study, judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions]) -> Iterator[Row]:
    known = [row for row in scores if response_key(row) in judge.values]
    if not known:
        return
    yield _row(study, judge, known, opinions, level="response")
    models = sorted({row.model for row in known})
    for model in models:
        yield _row(study, judge, [row for row in known if row.model == model], opinions, level="response", model=model)
    yield _row(study, judge, known, opinions, level="item")
    yield _row(study, judge, known, opinions, level="model")


def _row(study: Study, judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions], *, level: str, model: str = "") -> Row:
    pairs = _pairs(judge, scores, opinions, level)
    units = len(scores) if level == "response" else int(pairs.units.max()) + 1
    wanted = judge.wanted if level == "response" else tuple(name for name in judge.wanted if name in ("pearson", "spearman", "icc", "bias"))
    if units < FEWEST_UNITS:
        wanted = tuple(name for name in wanted if name == "bias")
    if level == "model":
        found = concordance_of_units(pairs, study.settings, wanted)
    else:
        found = concordance(pairs if level == "response" else means_of_units(pairs), study.settings, wanted)
    row: Row = {"level": level, "model": model} | _bounds(found)
    same = same_maker(study.all_graders[judge.name], study.models[model], study.all_graders) if judge.kind == "grader" and model else ""
    return row | {"n": units, "n_patients": len({score.patient_id for score in scores}), "same_maker": same}


def _bounds(found: Mapping[str, Interval]) -> Row:
    return {
        f"{name}{end}": value for name, interval in found.items() for end, value in zip(("", "_low", "_high"), interval[:3], strict=True)
    }


def _pairs(judge: _Judge, scores: Sequence[Score], opinions: Mapping[Key, Opinions], level: str) -> Pairs:
    """Hold a judge's value of each answer against each clinician's.

    A clinician is held against each other one, in both orders; in means of several answers these would be the same on both sides, so there
    the first half of an answer's raters, by pseudonym, is held against the rest.
    """
    rows: list[tuple[float, float, bool, float, int]] = []
    for place, score in enumerate(scores):
        key = response_key(score)
        said = list(zip(opinions[key].values, opinions[key].passes, strict=True))
        half = len(said) // 2
        if judge.kind != CLINICIAN:
            own = [(judge.values[key], *other) for other in said]
        elif level == "response":
            own = [(one, *other) for a, (one, _) in enumerate(said) for b, other in enumerate(said) if a != b]
        else:
            own = [(one, *other) for one, _ in said[:half] for other in said[half:]]
        rows += [(*pair, 1 / len(own), place) for pair in own]
    value, clinician, passed, weight, places = (np.array(column) for column in zip(*rows, strict=True))
    names = [score.item_id if level == "item" else score.model for score in scores]
    return Pairs(value, clinician, passed, weight, codes_of(names)[places], codes_of([score.patient_id for score in scores])[places])
