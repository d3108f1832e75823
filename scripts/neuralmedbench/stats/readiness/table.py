"""Whether what a site asked of a model is met, is not met, or cannot be told from so many patients. Never a recommendation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scipy import stats

from neuralmedbench.config.load import nearest
from neuralmedbench.config.readiness import DiseaseGroup, ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.stats.descriptive import headline
from neuralmedbench.stats.intervals import clopper_pearson
from neuralmedbench.stats.pairs import holm
from neuralmedbench.stats.readiness.judges import JUDGES, Answers, belongs, hallucination_grades, patient_rates
from neuralmedbench.stats.study import BenchmarkStudy, Study

MET, NOT_MET, OPEN, NOT_STATED, NOT_MEASURED = "met", "not met", "cannot be told", "condition not stated", "not measured"
PATIENTS, WHOLE, VALUE = "min_patients", "all_conditions", "positive_predictive_value"
SHOWN_CASES = 10

Row = dict[str, Any]


class Bounds(NamedTuple):
    """A share of patients with its exact one-sided bounds, each at the whole confidence level."""

    value: float
    low: float
    high: float
    patients: int


def bounds(events: float, patients: int, confidence: float) -> Bounds:
    """Give the exact one-sided bounds of a share.

    Parameters
    ----------
    events : float
        Sum over patients of the share of their answers with the event, 0 to `patients`.
    patients : int
        Independent patients, at least 1.
    confidence : float
        Of each bound alone.

    Returns
    -------
    Bounds
        Clopper and Pearson, Biometrika 26 (1934) 404, at fractional events. A patient's mean varies less than a single answer, so the bounds
        are on the safe side.

    Examples
    --------
    >>> round(bounds(0, 8, 0.95).high, 3)
    0.312
    """
    low, high = clopper_pearson(events, patients, 2 * confidence - 1)  # two bounds, each with the whole error for itself
    return Bounds(events / patients, low, high, patients)


def p_at_least(events: float, patients: int, share: float) -> float:
    """Probability of as many events or more if the true share were `share`: small when the truth is surely above it."""
    return 1.0 if events <= 0 else float(stats.beta.cdf(share, events, patients - events + 1))


def p_at_most(events: float, patients: int, share: float) -> float:
    """Probability of as many events or fewer if the true share were `share`: small when the truth is surely below it."""
    return 1.0 if events >= patients else float(stats.beta.sf(share, events + 1, patients - events))


@dataclass(frozen=True)
class _Group:
    """One disease group's answers of one model, and by condition the share of each patient's answers that have the property."""

    answers: Answers
    shares: dict[str, dict[str, float]]

    @property
    def patients(self) -> int:
        return len({row.patient_id for row in self.answers.scores})


def readiness_rows(study: Study) -> list[Row]:
    """Rows of `readiness.csv`.

    Parameters
    ----------
    study : Study
        The run.

    Returns
    -------
    list of dict
        For every benchmark, model and group what was measured (`use` is empty), then every stated condition with its verdict, then each use as
        a whole (condition `all_conditions`): met when every condition is, not met when one is not. p values are corrected after Holm over
        all stated conditions of a model on a benchmark.

    Raises
    ------
    ConfigError
        If a group names a diagnosis that the vocabulary does not have: it would be a group without patients.
    """
    for name, group in study.readiness.groups.items():
        for key in group.diagnoses:
            if key not in study.vocabulary.diagnoses:
                near = nearest(key, sorted(study.vocabulary.diagnoses)) if study.vocabulary.diagnoses else ""
                message = f"config/readiness.yaml: groups.{name}: {key!r} is no key of the vocabulary{near}"
                raise ConfigError(message)
    return [
        {"benchmark": benchmark.name, "model": model, **row}
        for benchmark in study.benchmarks.values()
        for model in study.models
        if model not in study.readers  # uses are of models
        for row in _model_rows(_answers(study, benchmark, model), study.readiness)
    ]


def _answers(study: Study, benchmark: BenchmarkStudy, model: str) -> Answers:
    gold = {row.item_id: row for row in benchmark.gold}
    return Answers(
        scores=[row for row in headline(benchmark.scores[model]) if not row.missing and row.item_id in gold],
        items={row.item_id: row for row in benchmark.items},
        gold=gold,
        hallucinated=hallucination_grades(benchmark.grades[model, grader] for grader in study.graders),
        vocabulary=study.vocabulary,
    )


def _model_rows(answers: Answers, config: ReadinessConfig) -> Iterator[Row]:
    groups: dict[str, _Group] = {}
    for name, group in config.groups.items():
        part = _of_group(answers, group)
        groups[name] = _Group(part, {condition: patient_rates(part, judge) for condition, judge in JUDGES.items()})
    for name, found in groups.items():
        yield from _measured(name, found, config)
        yield from _predictive_value(name, config.groups[name], answers, found, config.confidence)
    yield from _verdicts(groups, config)


def _of_group(answers: Answers, group: DiseaseGroup) -> Answers:
    if not group.diagnoses:
        return answers
    kept = {name for name, gold in answers.gold.items() if belongs(gold.answer, group.diagnoses, answers.vocabulary)}
    return replace(answers, scores=[row for row in answers.scores if row.item_id in kept])


def _measured(name: str, group: _Group, config: ReadinessConfig) -> Iterator[Row]:
    if group.patients:
        yield {"group": name, "condition": PATIENTS, "value": group.patients, "n_patients": group.patients, "verdict": NOT_STATED}
    for condition, shares in group.shares.items():
        if shares:
            yield {"group": name, "condition": condition, **_shown(shares, config.confidence), "verdict": NOT_STATED}


def _shown(shares: Mapping[str, float], confidence: float) -> Row:
    found = bounds(sum(shares.values()), len(shares), confidence)
    return {"value": found.value, "low": found.low, "high": found.high, "n_patients": found.patients}


def _verdicts(groups: Mapping[str, _Group], config: ReadinessConfig) -> Iterator[Row]:
    """Judge every stated condition; the tests of one model are corrected together, those for met and those for not met apart."""
    stated = config.stated
    tested = [
        (place, sum(shares.values()), len(shares), limit)
        for place, (_, group, condition, limit) in enumerate(stated)
        if (shares := groups[group].shares.get(condition))
    ]
    above = dict(zip([row[0] for row in tested], holm([p_at_least(*row[1:]) for row in tested]), strict=True))
    below = dict(zip([row[0] for row in tested], holm([p_at_most(*row[1:]) for row in tested]), strict=True))
    alpha, verdicts = 1 - config.confidence, dict[tuple[str, str], list[str]]()
    for place, (use, name, condition, limit) in enumerate(stated):
        group = groups[name]
        row: Row = {"use": use, "group": name, "condition": condition, "limit": limit}
        if condition == PATIENTS:
            row |= {"value": group.patients, "n_patients": group.patients, "verdict": MET if group.patients >= limit else NOT_MET}
        elif place not in above:
            row |= {"n_patients": 0, "verdict": NOT_MEASURED}
        else:
            least = condition.startswith("min_")
            met, failed = (above[place], below[place]) if least else (below[place], above[place])
            verdict = MET if met < alpha else NOT_MET if failed < alpha else OPEN
            row |= _shown(group.shares[condition], config.confidence) | {"p_met": met, "p_not_met": failed, "verdict": verdict}
            row["cases"] = " ".join(_cases(group.answers, condition, wanted=not least)[:SHOWN_CASES])
        verdicts.setdefault((use, name), []).append(row["verdict"])
        yield row
    for (use, name), found in verdicts.items():
        whole = NOT_MET if NOT_MET in found else MET if set(found) == {MET} else OPEN
        yield {"use": use, "group": name, "condition": WHOLE, "n_patients": groups[name].patients, "verdict": whole}


def _cases(answers: Answers, condition: str, *, wanted: bool) -> list[str]:
    """Cases whose answers speak against the condition, those with the most such answers first."""
    found = Counter(row.case_id for row in answers.scores if JUDGES[condition](row, answers) is wanted)
    return [case for case, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))]


def _predictive_value(name: str, group: DiseaseGroup, answers: Answers, part: _Group, confidence: float) -> Iterator[Row]:
    """Give how often a named disease of the group would be there at the site's prevalence p: s p / (s p + f (1 - p)).

    s is the share of right answers in the group, f that of answers about other patients which name a disease of the group first. Each bound
    takes one of them at its worst and the other too, both at half of the error, so together they hold at the confidence level (Bonferroni).
    """
    p, sensitivity = group.prevalence, part.shares["min_accuracy"]
    others = replace(
        answers,
        scores=[row for row in answers.scores if not belongs(answers.gold[row.item_id].answer, group.diagnoses, answers.vocabulary)],
    )
    named = patient_rates(
        others, lambda row, _: bool(row.differential) and belongs(row.differential[0], group.diagnoses, answers.vocabulary)
    )
    if p is None or not group.diagnoses or not sensitivity or not named:
        return
    half = 1 - (1 - confidence) / 2
    s, f = (bounds(sum(shares.values()), len(shares), half) for shares in (sensitivity, named))
    low, high = _ppv(s.low, f.high, p), _ppv(s.high, f.low, p)
    value = _ppv(s.value, f.value, p)
    yield {
        "group": name,
        "condition": VALUE,
        "limit": p,
        "value": value,
        "low": low,
        "high": high,
        "n_patients": s.patients + f.patients,
        "verdict": "",
    }


def _ppv(sensitivity: float, false: float, prevalence: float) -> float | None:
    named = sensitivity * prevalence + false * (1 - prevalence)
    return sensitivity * prevalence / named if named > 0 else None
