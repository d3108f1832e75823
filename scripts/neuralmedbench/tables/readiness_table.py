"""Whether what a site asked of a model is met, is not met, or cannot be told from so many patients. Never a recommendation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from neuralmedbench.config.load import nearest
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.exact import holm, holm_levels, p_at_least, p_at_most, share_bounds
from neuralmedbench.records.words import counted
from neuralmedbench.tables.declare import ALL, MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.readiness_conditions import (
    JUDGES,
    Group,
    Member,
    ModelAnswers,
    group_of,
    hallucination_grades,
    member_of,
    named_rates,
    when_stated,
)
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway

MET, NOT_MET, OPEN, NOT_STATED, NOT_MEASURED = "met", "not met", "cannot be told", "condition not stated", "not measured"
PATIENTS, WHOLE, VALUE = "min_patients", "all_conditions", "positive_predictive_value"
SHOWN_CASES = 10


@dataclass(frozen=True, kw_only=True)
class ReadinessRow(ResultRow):
    """One condition of a site for one model and disease group, or one use as a whole."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    use: str | None = None
    group: str | None = None
    condition: str | None = None
    limit: float | None = None
    stated: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    n_patients: int | None = None
    p_met: float | None = None
    p_not_met: float | None = None
    verdict: str | None = None
    failing: str | None = None
    cases: str | None = None


def readiness_rows(study: Study) -> list[ReadinessRow]:
    """Rows of `readiness.csv`.

    For every benchmark, model and group what was measured (`use` is empty), then every stated condition with its verdict, then each use as
    a whole (condition `all_conditions`): met when every condition is, not met when one is not; `failing` names the conditions that are
    not met, or where there is none those that are open. p values are corrected after Holm over all stated conditions of a model on a
    benchmark, and `bound` is the one-sided bound at the error that Holm allows: a condition that is met has it on the right side of the
    limit. `stated` says whether the conditions were written down before the answers.

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
    members = {name: member_of(group, study.vocabulary) for name, group in study.readiness.groups.items()}
    return [
        ReadinessRow(benchmark=benchmark.name, model=model, **row)
        for benchmark in study.benchmarks.values()
        for model in study.models
        if model not in study.readers  # uses are of models
        for row in _model_rows(study, benchmark, model, members)
    ]


def _answers(study: Study, benchmark: BenchmarkStudy, model: str) -> ModelAnswers:
    gold = {row.item_id: row for row in benchmark.gold}
    return ModelAnswers(
        scores=[row for row in headline(benchmark.scores[model]) if not row.missing and row.item_id in gold],
        items={row.item_id: row for row in benchmark.items},
        gold=gold,
        hallucinated=hallucination_grades(benchmark.grades[model, grader] for grader in study.graders),
        vocabulary=study.vocabulary,
    )


def _model_rows(study: Study, benchmark: BenchmarkStudy, model: str, members: Mapping[str, Member]) -> Iterator[Cells]:
    config, answers = study.readiness, _answers(study, benchmark, model)
    groups = {name: group_of(answers, member) for name, member in members.items()}
    for name, found in groups.items():
        yield from _measured(name, found, config)
        yield from _predictive_value(name, config, answers, members[name])
    stated = when_stated(config, benchmark.responses[model])
    for row in _verdicts(groups, config):
        yield row | {"stated": stated}


def _measured(name: str, group: Group, config: ReadinessConfig) -> Iterator[Cells]:
    if group.patients:
        yield {"group": name, "condition": PATIENTS, "value": group.patients, "n_patients": group.patients, "verdict": NOT_STATED}
    for condition, shares in group.shares.items():
        if shares:
            yield {"group": name, "condition": condition, **_shown(shares, config.confidence), "verdict": NOT_STATED}


def _shown(shares: Mapping[str, float], confidence: float) -> Cells:
    found = share_bounds(sum(shares.values()), len(shares), confidence)
    return {"value": found.value, "low": found.low, "high": found.high, "n_patients": found.patients}


class _Test(NamedTuple):
    """How one stated condition came out: corrected p values of met and of not met, and the bound that decides about met."""

    met: float
    failed: float
    bound: float


def _tests(groups: Mapping[str, Group], config: ReadinessConfig) -> dict[int, _Test]:
    """Test every stated condition that was measured; the tests of one model are corrected together, those for met and for not met apart."""
    measured = {
        place: (sum(shares.values()), len(shares), limit)
        for place, (_, group, condition, limit) in enumerate(config.stated)
        if (shares := groups[group].shares.get(condition))
    }
    least = [config.stated[place][2].startswith("min_") for place in measured]
    met, failed = (
        [p_at_least(*one) if minimum is wanted else p_at_most(*one) for one, minimum in zip(measured.values(), least, strict=True)]
        for wanted in (True, False)
    )
    found = dict[int, _Test]()
    for place, minimum, *tested in zip(measured, least, holm(met), holm(failed), holm_levels(met, 1 - config.confidence), strict=True):
        events, patients, _ = measured[place]
        ends = share_bounds(events, patients, 1 - tested[2])
        found[place] = _Test(tested[0], tested[1], ends.low if minimum else ends.high)
    return found


def _verdicts(groups: Mapping[str, Group], config: ReadinessConfig) -> Iterator[Cells]:
    tests, alpha = _tests(groups, config), 1 - config.confidence
    found: dict[tuple[str, str], list[Cells]] = {}
    for place, (use, name, condition, limit) in enumerate(config.stated):
        group = groups[name]
        row: Cells = {"use": use, "group": name, "condition": condition, "limit": limit}
        if condition == PATIENTS:
            row |= {"value": group.patients, "n_patients": group.patients, "verdict": MET if group.patients >= limit else NOT_MET}
        elif place not in tests:
            row |= {"n_patients": 0, "verdict": NOT_MEASURED}
        else:
            test = tests[place]
            verdict = MET if test.met < alpha else NOT_MET if test.failed < alpha else OPEN
            row |= _shown(group.shares[condition], config.confidence)
            row |= {"bound": test.bound, "p_met": test.met, "p_not_met": test.failed, "verdict": verdict}
            row["cases"] = " ".join(_cases(group.answers, condition, wanted=not condition.startswith("min_"))[:SHOWN_CASES])
        found.setdefault((use, name), []).append(row)
        yield row
    for (use, name), rows in found.items():
        failing = [row for row in rows if row["verdict"] == NOT_MET] or [row for row in rows if row["verdict"] != MET]
        verdict = MET if not failing else NOT_MET if failing[0]["verdict"] == NOT_MET else OPEN
        cases = list(dict.fromkeys(case for row in failing for case in row.get("cases", "").split()))[:SHOWN_CASES]
        whole: Cells = {"use": use, "group": name, "condition": WHOLE, "n_patients": groups[name].patients, "verdict": verdict}
        yield whole | {"failing": " ".join(row["condition"] for row in failing), "cases": " ".join(cases)}


def _cases(answers: ModelAnswers, condition: str, *, wanted: bool) -> list[str]:
    """Cases whose answers speak against the condition, those with the most such answers first."""
    found = Counter(row.case_id for row in answers.scores if JUDGES[condition](row, answers) is wanted)
    return [case for case, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))]


def _predictive_value(name: str, config: ReadinessConfig, answers: ModelAnswers, member: Member) -> Iterator[Cells]:
    """Give how often a named disease of the group would be there at the site's prevalence p: s p / (s p + f (1 - p)).

    s is the share of answers about patients of the group which name a disease of it first, f that of answers about other patients. Each bound
    takes one of them at its worst and the other too, both at half of the error, so together they hold at the confidence level (Bonferroni).
    """
    p = config.groups[name].prevalence
    if p is None:
        return
    row: Cells = {"group": name, "condition": VALUE, "limit": p}
    own, others = (named_rates(answers, member, inside=inside) for inside in (True, False))
    if not own or not others:
        yield row | {"n_patients": len(own) + len(others), "verdict": NOT_MEASURED}
        return
    half = 1 - (1 - config.confidence) / 2
    s, f = (share_bounds(sum(shares.values()), len(shares), half) for shares in (own, others))
    value, low, high = _ppv(s.value, f.value, p), _ppv(s.low, f.high, p), _ppv(s.high, f.low, p)
    yield row | {"value": value, "low": low, "high": high, "n_patients": s.patients + f.patients, "verdict": ""}


def _ppv(sensitivity: float, false: float, prevalence: float) -> float | None:
    named = sensitivity * prevalence + false * (1 - prevalence)
    return sensitivity * prevalence / named if named > 0 else None


def readiness_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how many conditions of the site are met; never a recommendation."""
    rows = tables["readiness"]
    stated = [row for row in rows if row.get("use")]
    patients = max((row["n_patients"] for row in rows if isinstance(row["n_patients"], int)), default=0)
    n = f"up to {counted(patients, 'patient')} a group, {counted(len(stated), 'stated condition')}"
    if not stated:
        return Takeaway("No condition is stated, so nothing is met or not met: thresholds belong to the site.", n)
    met, not_met = (sum(row["verdict"] == verdict for row in stated) for verdict in ("met", "not met"))
    verb = {1: "is"}
    told = (
        f"{met} {verb.get(met, 'are')} met, {not_met} {verb.get(not_met, 'are')} not met and {len(stated) - met - not_met} cannot be told"
    )
    return Takeaway(f"Of {counted(len(stated), 'verdict')}, {told}.", n)


TABLE = Table(
    name="readiness",
    row=ReadinessRow,
    rows=of_study(readiness_rows),
    suppression=Suppression(
        f"{MODEL} use group condition limit stated",
        labels=lambda row: [] if row["group"] == ALL else [(f"group {row['group']}", "")],
        always="cases",
        says="verdict",
    ),
    takeaways={"readiness": readiness_takeaway},
)
