"""Answers of a run beside what clinicians said of them: by the form's own idea of a pass, real and simulated raters apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.clinicians.opinions import ClinicianWord, clinician_words, fresh_sample
from neuralmedbench.tables.graders import CORE
from neuralmedbench.tables.study import BenchmarkStudy, Study


@dataclass(frozen=True)
class Opinions:
    """What single clinicians gave an answer on the axis of a pass, before anything was adjudicated: 0 to 1, and whether it passes."""

    values: tuple[float, ...]
    passes: tuple[bool, ...]


def words_of(study: Study, *, simulated: bool) -> dict[Key, ClinicianWord]:
    """Give the word on each drawn answer on the axis of a pass; nothing when the form does not say what passes."""
    passes = study.form.passes
    return clinician_words([row for row in study.ratings if row.simulated == simulated], passes.axis) if passes else {}


def opinions_of(study: Study, *, simulated: bool) -> dict[Key, Opinions]:
    """Give what single raters said of each drawn answer, by their pseudonyms; of a rater who saw it in several rounds the last one counts."""
    passes = study.form.passes
    if passes is None:
        return {}
    axis, found = study.form.axes[passes.axis], defaultdict[Key, dict[str, float]](dict)
    for row in sorted(fresh_sample(study.ratings), key=lambda row: row.round_id):
        if (row.axis, row.simulated, row.adjudicated) == (passes.axis, simulated, False) and row.value is not None:
            found[response_key(row)][row.rater_id] = row.value
    reach, told = axis.highest - axis.lowest, dict[Key, Opinions]()
    for key, by_rater in found.items():
        values = [value for _, value in sorted(by_rater.items())]
        told[key] = Opinions(tuple((value - axis.lowest) / reach for value in values), tuple(value >= passes.from_ for value in values))
    return told


def grades_of(benchmark: BenchmarkStudy, model: str, grader: str, scores: Iterable[Score]) -> dict[Key, float]:
    """Give what a grader says of the core diagnosis of each answer, 0 to 1; a grade of another text is stale and left out."""
    texts = {response_key(row): row.text_sha256 for row in scores}
    return {
        response_key(grade): grade.value
        for grade in benchmark.grades.get((model, grader), [])
        if grade.criterion == CORE and grade.value is not None and texts.get(response_key(grade)) == grade.text_sha256
    }


def chances(words: Mapping[Key, ClinicianWord], scores: Mapping[Key, Score]) -> dict[Key, float]:
    """Give the probability with which each answer was drawn into any round.

    Parameters
    ----------
    words : mapping of Key to ClinicianWord
        The word on each drawn answer, with the probability of the round that counts.
    scores : mapping of Key to Score
        Of the same answers; model, family and level are the stratum of a draw.

    Returns
    -------
    dict of Key to float
        1 - the product of (1 - probability) over the rounds that drew from the answer's stratum; answers without a probability are left
        out, as they were not drawn. Where one round drew a half of a stratum, and another a half again, it is 0.75.
    """
    rounds: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    known = {key: word for key, word in words.items() if word.probability is not None and key in scores}
    for key, word in known.items():
        rounds[_stratum(scores[key])][word.round_id] = float(word.probability or 0.0)
    found = {}
    for key in known:
        missed = 1.0
        for probability in rounds[_stratum(scores[key])].values():
            missed *= 1.0 - probability
        found[key] = 1.0 - missed
    return found


def _stratum(score: Score) -> tuple[str, ...]:
    return score.model, score.family, score.level
