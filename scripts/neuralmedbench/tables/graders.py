"""What graders gave, how far they agree with the first of them, and the planted errors that each detects: `graders.csv`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.concordance import Pairs, concordance
from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, GradeState, Key, response_key
from neuralmedbench.records.words import counted, decimal, listing, percent, percent_with_span
from neuralmedbench.scoring.planted.checks import EditCheck, check_together, unused_criteria
from neuralmedbench.scoring.scores import PASS_VALUE
from neuralmedbench.tables.declare import MODEL, Cells, Count, Flag, ModelRow, Number, Suppression, Table, Tables, Takeaway
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import begun, by_benchmark, cluster_of

IN_REFERENCE, IN_ANSWERS = "detected_in_reference", "detected_in_answers"
"""Measures: planted errors detected, in answers made from the reference, or in answers of models that the grader has judged."""
BELOW, OPEN, REACHED = "below", "open", "reached"
"""The interval lies below the floor, holds it, or lies at or above it."""
KAPPA, AGREEMENT = "kappa_with_first", "agreement_with_first"
"""Measures: agreement on pass or fail with the first grader."""


@dataclass(frozen=True, kw_only=True)
class GraderRow(ModelRow):
    """One measure of one grader: of its grades of a model, or of a planted error (`edit`) by criterion; of all models if it names none."""

    grader: str
    measure: str
    criterion: str = ""
    edit: str = ""
    must: str = ""
    value: Number = None
    low: Number = None
    high: Number = None
    n: Count = None
    n_patients: Count = None
    base_failed: Number = None
    missing: Count = None
    floor: Number = None
    against_floor: str = ""
    used: Flag = None
    note: str = ""


def grader_rows(study: Study) -> list[GraderRow]:
    """Rows of `graders.csv`.

    Per benchmark, model and grader the number of grades by state (`ok`, and where there are such `failed`, `skipped`, `not_graded`), the
    means of the two verdicts, and, of a later grader, its agreement with the first one on pass or fail (Cohen's kappa, and raw).

    Per benchmark, grader, criterion and edit the share of patients for whom the grader graded as expected both the edited answer and the
    answer that was edited, with its exact interval; a patient counts once per edit. `base_failed` is the share for whom it did not before
    the edit. Errors are planted in answers made from the reference, and in every answer of a model that the grader has judged: these
    rows are about all models together, with the mean over their answers to a patient; for a model whose own interval lies below the
    floor there is a row of its own. `used` is about the criterion: false if the interval of one of its edits lies below the floor, with a
    model for the answers of that model.
    """
    return [*_grade_rows(study), *_planted_rows(study)]


def _planted_rows(study: Study) -> Iterator[GraderRow]:
    floor = study.grader_floor, study.settings.confidence
    for name, benchmark in study.benchmarks.items():
        for grader in study.all_graders:
            checks = benchmark.checks.get(grader, [])
            unused = unused_criteria(checks, *floor)
            together = check_together(test for (_, tested), test in benchmark.answer_tests.items() if tested == grader)
            rows = [(IN_REFERENCE, "", check, check.criterion not in unused) for check in checks]
            rows += [(IN_ANSWERS, "", check, check.criterion not in unused) for check in together]
            for (model, tested), of_model in benchmark.answer_checks.items():
                if tested == grader:
                    rows += [(IN_ANSWERS, model, check, False) for check in of_model if check.below(*floor)]
            for measure, model, check, used in rows:
                yield GraderRow(benchmark=name, grader=grader, measure=measure, model=model, used=used, **_cells(check, study))


def _cells(check: EditCheck, study: Study) -> Cells:
    low, high = check.interval(study.settings.confidence)
    floor = study.grader_floor
    return {
        "criterion": check.criterion,
        "edit": check.edit,
        "must": check.must,
        "n_patients": check.n,
        "value": check.detected / check.n if check.n else None,
        "low": low if check.n else None,
        "high": high if check.n else None,
        "base_failed": check.base_failed / check.n if check.n else None,
        "missing": check.missing,
        "floor": floor,
        "against_floor": BELOW if high < floor else REACHED if low >= floor else OPEN,
    }


def _grade_rows(study: Study) -> Iterator[GraderRow]:
    for benchmark in study.benchmarks.values():
        for model in study.models:
            first = _verdicts(benchmark, model, next(iter(study.graders), ""))
            for grader in study.graders:
                if benchmark.grades[model, grader]:
                    later = {} if grader == next(iter(study.graders)) else first
                    note = _other_task(study, grader)
                    yield from _rows_of_model(benchmark, model, grader, later, settings=study.settings, note=note)


def _other_task(study: Study, grader: str) -> str:
    """Name the task of a grader that does not judge diagnoses, so that their absence does not look like a failure."""
    config = study.graders[grader]
    seats = [study.all_graders[member] for member in config.members] or [config]
    tasks = {seat.task for seat in seats if seat.kind == "llm"} - {"diagnosis"}
    return f"judges {tasks.pop()}, no diagnosis" if tasks else ""


def _verdicts(benchmark: BenchmarkStudy, model: str, grader: str) -> dict[Key, bool]:
    grades = benchmark.grades.get((model, grader), [])
    return {response_key(grade): grade.value >= 0.5 for grade in grades if grade.criterion == CORE_DIAGNOSIS and grade.value is not None}


def _rows_of_model(
    benchmark: BenchmarkStudy, model: str, grader: str, first: dict[Key, bool], *, settings: IntervalSettings, note: str
) -> Iterator[GraderRow]:
    """Yield the rows of the grades of a model; `first` has the verdicts of the first grader, for those that come after it."""
    grades, verdicts = benchmark.grades[model, grader], _verdicts(benchmark, model, grader)
    patients = {item.item_id: item.patient_id for item in benchmark.items}
    head: Cells = {"benchmark": benchmark.name, "model": model, "grader": grader}
    head["n_patients"] = len({patients.get(grade.item_id, grade.item_id) for grade in grades})
    states = Counter(grade.state for grade in grades)
    note = note or (_left_to_readers(benchmark, model, verdicts) if states[GradeState.OK] else "gave no grade")
    for state in GradeState:
        if states[state] or state is GradeState.OK:
            yield GraderRow(**head, measure=str(state), n=states[state], note=note if state is GradeState.OK else "")
    for name in (CORE_DIAGNOSIS, MAIN_CONDITION):
        if known := [grade.value for grade in grades if grade.criterion == name and grade.value is not None]:
            yield GraderRow(**head, measure=f"mean_{name}", value=float(np.mean(known)), n=len(known))
    # agreement over the answers that both graders judged
    if shared := verdicts.keys() & first.keys():
        value, low, high, _ = _kappa(benchmark, verdicts, first, settings)
        yield GraderRow(**head, measure=KAPPA, value=value, low=low, high=high, n=len(shared))
        same = sum(verdicts[key] == first[key] for key in shared) / len(shared)
        yield GraderRow(**head, measure=AGREEMENT, value=same, n=len(shared))


def _kappa(benchmark: BenchmarkStudy, own: dict[Key, bool], first: dict[Key, bool], settings: IntervalSettings) -> Interval:
    """Return Cohen's kappa of two graders' verdicts over the answers that both judged; patients are resampled."""
    patients = {item.item_id: item.patient_id for item in benchmark.items}
    shared = sorted(own.keys() & first.keys())
    verdicts = np.array([[own[key], first[key]] for key in shared], dtype=np.float64).reshape(-1, 2)
    units, by = np.zeros(len(shared), dtype=np.int64), ByPatient([patients[key[0]] for key in shared], settings)
    pairs = Pairs(verdicts[:, 0], verdicts[:, 1], verdicts[:, 1] > PASS_VALUE, np.ones(len(shared)), units, by)
    return concordance(pairs, ("kappa",))["kappa"]


def _left_to_readers(benchmark: BenchmarkStudy, model: str, judged: Iterable[Key]) -> str:
    """Note how many free answers a grader left to one that reads: its means over the others are not means of the model."""
    free = {item.item_id for item in benchmark.items if item.has_free_answer}
    # items without a reference are graded by nobody
    free &= {row.item_id for row in benchmark.gold}
    answers = {response_key(row) for row in benchmark.responses[model] if row.item_id in free and row.state is ResponseState.OK}
    answers &= {response_key(row) for row in benchmark.scores[model]}  # only the elected sample of a vote is graded
    left = len(answers - set(judged))
    return f"left {left} free answers to graders that read" if left else ""


def planted_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say which graders are not used for what, and which were not tested."""
    planted = _planted(tables)
    rows = [row for row in planted if row["n_patients"] != 0]
    parts = []
    for grader, config in study.graders.items():
        if not any(row["grader"] == grader for row in rows):
            asked = any(row["grader"] == grader for row in planted)
            parts.append(f"{config.title} {'gave no grade of planted errors' if asked else 'was not tested'}")
            continue
        for benchmark in study.benchmarks:
            where = f" in {benchmark}" if len(study.benchmarks) > 1 else ""
            parts += not_used(study, tables, benchmark, grader, where)
            parts += _weak_together([row for row in rows if (row["benchmark"], row["grader"]) == (benchmark, grader)], config.title, where)
    floor = percent(study.grader_floor)
    if not parts:
        parts.append(f"for no planted error is detection significantly below {floor}")
    opened = sum(row["against_floor"] == OPEN for row in rows)
    text = f"{begun('; '.join(parts), study)}."
    if opened:
        text += f" It is inconclusive in {opened} of {counted(len(rows), 'comparison')}."
    sizes = []
    for benchmark in study.benchmarks:
        if own := [row for row in rows if row["benchmark"] == benchmark and row["n_patients"]]:
            sizes.append((benchmark, f"up to {counted(max(row['n_patients'] for row in own), cluster_of(own))} per planted error"))
    return Takeaway(text, by_benchmark(sizes) if sizes else "0 planted errors")


def not_used(study: Study, tables: Tables, benchmark: str, grader: str, where: str = "") -> list[str]:
    """Say in clauses for which criteria a grader is not used in a benchmark: for all answers, and for those of single models."""
    rows = [row for row in _planted(tables) if (row["benchmark"], row["grader"]) == (benchmark, grader)]
    missed = [row for row in rows if row["against_floor"] == BELOW and (row["measure"] == IN_REFERENCE or row["model"])]
    parts = []
    for model in dict.fromkeys(row["model"] for row in missed):
        own = [row for row in missed if row["model"] == model]
        answers = f" in answers of {study.models[model].title}" if model else ""
        parts.append(f"{study.all_graders[grader].title} is not used for {_criteria(own)}{answers}{where}{_worst(own)}")
    return parts


def _weak_together(rows: Sequence[Cells], title: str, where: str) -> list[str]:
    """Say for which criteria a grader is shown to be weak over the answers of all models, but not for those of any one model."""
    named = {row["criterion"] for row in rows if row["used"] is False}
    weak = [row for row in rows if row["against_floor"] == BELOW and row["criterion"] not in named]
    return (
        [f"{title} is used for {_criteria(weak)}{where}, but over the answers of all models it is shown to be weak{_worst(weak)}"]
        if weak
        else []
    )


def _criteria(rows: Sequence[Cells]) -> str:
    return listing([name.replace("_", " ") for name in dict.fromkeys(row["criterion"] for row in rows)])


def _worst(rows: Sequence[Cells]) -> str:
    known = [row for row in rows if row["value"] is not None]
    worst = min(known, key=lambda row: (row["high"], row["value"]), default=None)
    return f": of one planted error it detects {percent_with_span(worst['value'], worst['low'], worst['high'])}" if worst else ""


def _planted(tables: Tables) -> list[Cells]:
    return [row for row in tables["graders"] if row["criterion"]]


def graders_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise who graded, and how far the later graders agree with the first."""
    rows = [row for row in tables["graders"] if not row["criterion"]]
    grades, failed = Counter[str](), 0
    for row in rows:
        grades[row["grader"]] += row["n"] if row["measure"] == GradeState.OK else 0
        failed += row["n"] if row["measure"] == GradeState.FAILED else 0
    active = [name for name in study.all_graders if grades[name]]
    silent = [name for name in study.all_graders if name in grades and not grades[name]]
    if not active:
        return Takeaway("No answer has been graded.", "0 grades")
    parts = [f"{study.all_graders[name].title} gave {counted(grades[name], 'grade')}" for name in active]
    later = [row for row in rows if row["grader"] in active[1:] and row["value"] is not None]
    kappas, raw = ([row["value"] for row in later if row["measure"] == measure] for measure in (KAPPA, AGREEMENT))
    if raw:
        beyond = f"with kappa {decimal(min(kappas))} to {decimal(max(kappas))}" if kappas else "with a kappa that is not defined"
        parts.append(f"the others agree with the first {beyond} (raw: {percent(min(raw))} to {percent(max(raw))} of the answers)")
    parts += [f"{study.all_graders[name].title} gave none" for name in silent]
    missing = f", {failed:,} failed" if failed else ""
    return Takeaway(f"{begun('; '.join(parts), study)}.", f"{counted(grades.total(), 'grade')}{missing}, over all arms")


TABLE = Table(
    name="graders",
    row=GraderRow,
    rows=grader_rows,
    suppression=Suppression(f"{MODEL} grader measure criterion edit must floor against_floor used note"),
    takeaways={"graders": graders_takeaway, "planted": planted_takeaway},
)
