"""A site's conditions for a use of a model, each met, not met, or undecided with so few patients: `readiness.csv`. Never a recommendation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from neuralmedbench.config.load import nearest
from neuralmedbench.config.readiness import DiseaseGroup, ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.exact import ShareTest, share_bounds, share_tests
from neuralmedbench.records.items import DIAGNOSES, Family, Gold, Item, is_headline
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade, Key, ParseStatus, Score, response_key
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.records.words import counted
from neuralmedbench.scoring.lines import resolve
from neuralmedbench.scoring.matching import says_no_lesion
from neuralmedbench.scoring.places import side_right, sides
from neuralmedbench.tables.declare import ALL, MODEL, Cells, Count, ModelRow, Number, Suppression, Table, Tables, Takeaway, Text
from neuralmedbench.tables.groups import is_normal
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import cluster_of

SURE = 0.8
"""Stated confidence from which an answer counts as sure. (Our rule.)"""
HALLUCINATION = "error.hallucinated_finding"


@dataclass(frozen=True, kw_only=True)
class ModelAnswers:
    """One model's answers on one benchmark with the records needed to judge them; missing answers are left out.

    Attributes
    ----------
    scores : list of Score
        Arm full, strategy direct.
    items, gold : mapping
        By item id.
    hallucinated : mapping of response key to bool
        A grader's verdict on invented findings, where one was asked.
    """

    scores: list[Score]
    items: Mapping[str, Item]
    gold: Mapping[str, Gold]
    hallucinated: Mapping[Key, bool]
    vocabulary: Vocabulary


Judge = Callable[[Score, ModelAnswers], bool | None]
"""Returns True if an answer has the property, and None where the property does not apply."""


def patient_rates(answers: ModelAnswers, judge: Judge) -> dict[str, float]:
    """Return the share of a patient's answers that have a property, by patient; patients without an answer to judge are left out."""
    found: dict[str, list[bool]] = defaultdict(list)
    for score in answers.scores:
        verdict = judge(score, answers)
        if verdict is not None:
            found[score.patient_id].append(verdict)
    return {patient: sum(values) / len(values) for patient, values in sorted(found.items())}


def accurate(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer passes."""
    return score.passed


def covered(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer can be used: it is complete, readable and no abstention."""
    return score.state == "ok" and score.parse_status != ParseStatus.FAILED and not score.abstained


def false_alarm(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer names a disease in a patient who has none."""
    if not is_normal(answers.gold[score.item_id], answers.vocabulary) or score.passed is None:
        return None
    return covered(score, answers) and not score.passed


def missed_lesion(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer to a question for the lesion denies one that was shown."""
    item, gold = answers.items[score.item_id], answers.gold[score.item_id]
    if item.family is not Family.LESION_RECOGNITION or gold.lesion is None or not item.lesion_shown:
        return None
    return says_no_lesion((score.fields or {}).get("lesion", ""), answers.vocabulary)


def wrong_side(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer puts a lesion of a known side on another side; an answer without a side is not wrong about it."""
    lesion = answers.gold[score.item_id].lesion
    if lesion is None or not lesion.side or score.fields is None or "side" not in score.fields:
        return None
    return bool(sides(score.fields["side"])) and not side_right(score.fields["side"], lesion)


def hallucinated(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if a grader found an invented finding; only where the list of findings is complete."""
    return answers.hallucinated.get(response_key(score)) if answers.gold[score.item_id].findings_complete else None


def confident_error(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer with a stated confidence of at least `SURE` is wrong; None without a stated confidence."""
    return None if score.confidence is None or score.passed is None else score.confidence >= SURE and not score.passed


def right_when_sure(score: Score, answers: ModelAnswers) -> bool | None:
    """Return True if an answer with a stated confidence of at least `SURE` is right; None for the others."""
    return None if score.confidence is None or score.confidence < SURE or score.passed is None else score.passed


JUDGES: dict[str, Judge] = {
    "min_accuracy": accurate,
    "max_hallucinated_findings": hallucinated,
    "max_missed_lesions": missed_lesion,
    "max_false_alarms": false_alarm,
    "max_wrong_side": wrong_side,
    "min_coverage": covered,
    "max_confident_errors": confident_error,
    "min_right_when_sure": right_when_sure,
}
"""By condition."""


def hallucination_grades(grades: Iterable[Iterable[Grade]]) -> dict[Key, bool]:
    """Return the verdicts on invented findings; of several graders the first in the run list with a value counts."""
    found: dict[Key, bool] = {}
    for rows in grades:
        for grade in rows:
            if grade.criterion == HALLUCINATION and grade.value is not None:
                found.setdefault(response_key(grade), grade.value > 0)
    return found


def belongs(diagnosis: str, keys: Iterable[str], vocabulary: Vocabulary) -> bool:
    """Return True if a diagnosis is one of the given ones or narrower."""
    entry = resolve(diagnosis, vocabulary)
    return entry is not None and not {entry.key, *(wider.key for wider in vocabulary.ancestors(entry.key))}.isdisjoint(keys)


BEFORE, SAME_DAY, AFTER, NOT_KNOWN = "before the answers", "on the day of the first answer", "after the first answer", "not known"


Member = Callable[[str], bool]
"""Returns True if a diagnosis belongs to a disease group."""


def member_of(group: DiseaseGroup, vocabulary: Vocabulary) -> Member:
    """Return the test of membership in a group, cached as thousands of answers name the same few; without diagnoses all belong."""
    return cache(lambda diagnosis: not group.diagnoses or belongs(diagnosis, group.diagnoses, vocabulary))


@dataclass(frozen=True)
class Group:
    """One disease group's answers of one model, and by condition the share of each patient's answers that have the property."""

    answers: ModelAnswers
    shares: dict[str, dict[str, float]]

    @property
    def patients(self) -> int:
        """Patients with an answer."""
        return len({row.patient_id for row in self.answers.scores})


def group_of(answers: ModelAnswers, member: Member) -> Group:
    """Select the answers about the patients of a disease group."""
    kept = {name for name, gold in answers.gold.items() if member(gold.answer)}
    part = replace(answers, scores=[row for row in answers.scores if row.item_id in kept])
    return Group(part, {condition: patient_rates(part, judge) for condition, judge in JUDGES.items()})


def named_rates(answers: ModelAnswers, member: Member, *, inside: bool) -> dict[str, float]:
    """Share of each patient's answers that name a disease of the group first, for patients of the group or for all others.

    Answers to questions that ask for no diagnosis are left out: they cannot name one. An answer that names nothing does not name it.
    """

    def names(score: Score, part: ModelAnswers) -> bool | None:
        asked = part.items[score.item_id].family in DIAGNOSES and member(part.gold[score.item_id].answer) is inside
        return bool(score.differential) and member(score.differential[0]) if asked else None

    return patient_rates(answers, names)


def when_stated(config: ReadinessConfig, responses: Iterable[Response]) -> str:
    """Classify whether the conditions were stated before the first scored request to a model (arm full, strategy direct)."""
    days = sorted({row.called_on for row in responses if is_headline(row)} - {""})
    if not days or config.stated_on is None:
        return NOT_KNOWN
    day = config.stated_on.isoformat()
    return BEFORE if day < days[0] else SAME_DAY if day == days[0] else AFTER


MET, NOT_MET, OPEN, NOT_STATED, NOT_MEASURED = "met", "not met", "inconclusive", "condition not stated", "not measured"
PATIENTS, WHOLE, VALUE = "min_patients", "all_conditions", "positive_predictive_value"
SHOWN_CASES = 10


@dataclass(frozen=True, kw_only=True)
class ReadinessRow(ModelRow):
    """One condition of a site for one model and disease group, or one use as a whole."""

    use: Text = None
    group: Text = None
    condition: Text = None
    limit: Number = None
    stated: Text = None
    value: Number = None
    low: Number = None
    high: Number = None
    bound: Number = None
    n_patients: Count = None
    p_met: Number = None
    p_not_met: Number = None
    verdict: Text = None
    failing: Text = None
    cases: Text = None


def readiness_rows(study: Study) -> list[ReadinessRow]:
    """Rows of `readiness.csv`.

    Per benchmark, model and group the measured values (`use` is empty), then every stated condition with its verdict, then each use as
    a whole (condition `all_conditions`): met when every condition is, not met when one is not; `failing` names the conditions that are
    not met, or if there are none those that are undecided. p values are corrected after Holm over all stated conditions of a model on a
    benchmark, and `bound` is the one-sided bound at the error that Holm allows: if a condition is met, it lies on the right side of the
    limit. `stated` reports when the conditions were stated relative to the answers.

    Raises
    ------
    ConfigError
        If a group names a diagnosis that the vocabulary does not have: it would be a group without patients.
    """
    members = known_groups(study.readiness, study.vocabulary)
    return [
        ReadinessRow(benchmark=benchmark.name, model=model, **row)
        for benchmark in study.benchmarks.values()
        for model in study.models
        if model not in study.readers  # conditions are for models
        for row in model_rows(study, benchmark, model, members)
    ]


def known_groups(config: ReadinessConfig, vocabulary: Vocabulary) -> dict[str, Member]:
    """Return the test of membership of each disease group; ConfigError if one names a diagnosis that the vocabulary does not have."""
    for name, group in config.groups.items():
        for key in group.diagnoses:
            if key not in vocabulary.diagnoses:
                # a misspelt diagnosis would make a group without patients
                near = nearest(key, sorted(vocabulary.diagnoses)) if vocabulary.diagnoses else ""
                message = f"config/readiness.yaml: groups.{name}: {key!r} is no key of the vocabulary{near}"
                raise ConfigError(message)
    return {name: member_of(group, vocabulary) for name, group in config.groups.items()}


def answers_of(study: Study, benchmark: BenchmarkStudy, model: str, *, earlier: bool = False) -> ModelAnswers:
    """Gather the answers of a model's present revision, or of the one that it is compared with."""
    gold = {row.item_id: row for row in benchmark.gold}
    scores = benchmark.earlier if earlier else benchmark.scores
    return ModelAnswers(
        scores=[row for row in headline(scores[model]) if not row.missing and row.item_id in gold],
        items={row.item_id: row for row in benchmark.items},
        gold=gold,
        hallucinated=hallucination_grades(study.used_grades(benchmark.name, model, grader, earlier=earlier) for grader in study.graders),
        vocabulary=study.vocabulary,
    )


def model_rows(study: Study, benchmark: BenchmarkStudy, model: str, members: Mapping[str, Member]) -> Iterator[Cells]:
    """Yield the cells of `readiness.csv` of one model on one benchmark."""
    config, answers = study.readiness, answers_of(study, benchmark, model)
    groups = {name: group_of(answers, member) for name, member in members.items()}
    for name, found in groups.items():
        yield from _rows_without_limits(name, found, config)
        yield from _predictive_value(name, config, answers, members[name])
    stated = when_stated(config, benchmark.responses[model])
    for row in _verdicts(groups, config):
        yield row | {"stated": stated}


def _rows_without_limits(name: str, group: Group, config: ReadinessConfig) -> Iterator[Cells]:
    if group.patients:
        yield {"group": name, "condition": PATIENTS, "value": group.patients, "n_patients": group.patients, "verdict": NOT_STATED}
    for condition, shares in group.shares.items():
        if shares:
            yield {"group": name, "condition": condition, **_share_cells(shares, config.confidence), "verdict": NOT_STATED}


def _share_cells(shares: Mapping[str, float], confidence: float) -> Cells:
    found = share_bounds(sum(shares.values()), len(shares), confidence)
    return {"value": found.value, "low": found.low, "high": found.high, "n_patients": found.patients}


def _tests(groups: Mapping[str, Group], config: ReadinessConfig) -> dict[int, ShareTest]:
    """Test every stated condition that was measured, all those of one model together; keys are places in `config.stated`."""
    measured = {
        place: (sum(shares.values()), len(shares), limit, condition.startswith("min_"))
        for place, (_, group, condition, limit) in enumerate(config.stated)
        if (shares := groups[group].shares.get(condition))
    }
    return dict(zip(measured, share_tests(list(measured.values()), config.confidence), strict=True))


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
            verdict = MET if test.p_met < alpha else NOT_MET if test.p_not_met < alpha else OPEN
            row |= _share_cells(group.shares[condition], config.confidence)
            row |= {"bound": test.bound, "p_met": test.p_met, "p_not_met": test.p_not_met, "verdict": verdict}
            row["cases"] = " ".join(_cases(group.answers, condition, wanted=not condition.startswith("min_"))[:SHOWN_CASES])
        found.setdefault((use, name), []).append(row)
        yield row
    for (use, name), rows in found.items():
        # a use is met if all its conditions are
        failing = [row for row in rows if row["verdict"] == NOT_MET] or [row for row in rows if row["verdict"] != MET]
        verdict = MET if not failing else NOT_MET if failing[0]["verdict"] == NOT_MET else OPEN
        # cases of the failing conditions, without repeats
        cases = list(dict.fromkeys(case for row in failing for case in row.get("cases", "").split()))[:SHOWN_CASES]
        whole: Cells = {"use": use, "group": name, "condition": WHOLE, "n_patients": groups[name].patients, "verdict": verdict}
        yield whole | {"failing": " ".join(row["condition"] for row in failing), "cases": " ".join(cases)}


def _cases(answers: ModelAnswers, condition: str, *, wanted: bool) -> list[str]:
    """Return the cases with answers that violate the condition, those with the most such answers first."""
    found = Counter(row.case_id for row in answers.scores if JUDGES[condition](row, answers) is wanted)
    return [case for case, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))]


def _predictive_value(name: str, config: ReadinessConfig, answers: ModelAnswers, member: Member) -> Iterator[Cells]:
    """Yield the positive predictive value of a named disease of the group at the site's prevalence p: s p / (s p + f (1 - p)).

    s is the share of answers about patients of the group that name a disease of it first, f that of answers about other patients. Each bound
    takes both at their worst, each at half of the error, so together they hold at the confidence level (Bonferroni).
    """
    p = config.groups[name].prevalence
    if p is None:
        return
    row: Cells = {"group": name, "condition": VALUE, "limit": p}
    own, others = (named_rates(answers, member, inside=inside) for inside in (True, False))
    if not own or not others:
        yield row | {"n_patients": len(own) + len(others), "verdict": NOT_MEASURED}
        return
    # Bonferroni: each of the two shares gets half of the error
    half = 1 - (1 - config.confidence) / 2
    s, f = (share_bounds(sum(shares.values()), len(shares), half) for shares in (own, others))
    value, low, high = _ppv(s.value, f.value, p), _ppv(s.low, f.high, p), _ppv(s.high, f.low, p)
    yield row | {"value": value, "low": low, "high": high, "n_patients": s.patients + f.patients, "verdict": ""}


def _ppv(sensitivity: float, false: float, prevalence: float) -> float | None:
    named = sensitivity * prevalence + false * (1 - prevalence)
    return sensitivity * prevalence / named if named > 0 else None


def readiness_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many conditions of the site are met; never a recommendation."""
    rows = tables["readiness"]
    stated = [row for row in rows if row.get("use")]
    most = max((row for row in rows if isinstance(row["n_patients"], int)), key=lambda row: int(row["n_patients"]), default=None)
    size = counted(most["n_patients"], cluster_of([most])) if most else "0 patients"
    n = f"up to {size} a group, {counted(len(stated), 'stated condition')}"
    if not stated:
        return Takeaway("No condition is stated, so none was tested: thresholds belong to the site.", n)
    met, not_met = (sum(row["verdict"] == verdict for row in stated) for verdict in (MET, NOT_MET))
    verb = {1: "is"}
    text = f"{met} {verb.get(met, 'are')} met, {not_met} {verb.get(not_met, 'are')} not met and {len(stated) - met - not_met} inconclusive"
    return Takeaway(f"Of {counted(len(stated), 'verdict')}, {text}.", n)


TABLE = Table(
    name="readiness",
    row=ReadinessRow,
    rows=readiness_rows,
    suppression=Suppression(
        f"{MODEL} use group condition limit stated",
        labels=lambda row: [] if row["group"] == ALL else [(f"group {row['group']}", "")],
        always="cases",
        says="verdict",
    ),
    takeaways={"readiness": readiness_takeaway},
)
