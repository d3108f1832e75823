"""Grades per grader and agreement with the first grader (`graders.csv`), and the planted errors that each grader detects (`grader_checks.csv`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.concordance import Pairs, concordance
from neuralmedbench.estimates.intervals import ByPatient, Interval, IntervalSettings
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, GradeState, Key, response_key
from neuralmedbench.records.words import counted, decimal, listing, percent, percent_with_span
from neuralmedbench.scoring.planted.checks import EditCheck, check_together, unused_criteria
from neuralmedbench.scoring.scores import PASS_VALUE
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ModelRow, ResultRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, begun, by_benchmark, cluster_of

REFERENCE, ANSWER = "reference", "answer"
"""What errors are planted in: answers made from the reference, or answers of models that the grader has judged."""
BELOW, OPEN, REACHED = "below", "open", "reached"
"""The interval lies below the floor, holds it, or lies at or above it."""


@dataclass(frozen=True, kw_only=True)
class GraderCheckRow(ResultRow):
    """What one grader made of one planted error, for one criterion; `model` only where errors were planted in its answers."""

    benchmark: str
    grader: str
    planted_in: str
    model: str
    in_reference_pool: bool | None = None
    criterion: str
    edit: str
    must: str
    n_patients: int | None = None
    detected: float | None = None
    low: float | None = None
    high: float | None = None
    base_failed: float | None = None
    missing: int | None = None
    floor: float | None = None
    against_floor: str | None = None
    used: bool | None = None


def grader_check_rows(study: Study) -> list[GraderCheckRow]:
    """Rows of `grader_checks.csv`.

    Per benchmark, grader, criterion and edit the share of patients for whom the grader graded as expected both the edited answer and the
    answer that was edited, with its exact interval; a patient counts once per edit. `base_failed` is the share for whom it did not before
    the edit. Errors are planted in answers made from the `reference`, and in every `answer` of a model that the grader has judged: these
    rows are about all models together, with the mean over their answers to a patient; for a model whose own interval lies below the
    floor there is a row of its own. `used` is about the criterion: false if the interval of one of its edits lies below the floor, with a
    model for the answers of that model.
    """
    rows = []
    floor = study.grader_floor, study.settings.confidence
    for name, benchmark in study.benchmarks.items():
        for grader in study.all_graders:
            checks = benchmark.checks.get(grader, [])
            unused = unused_criteria(checks, *floor)
            together = check_together(test for (_, one), test in benchmark.answer_tests.items() if one == grader)
            missed = [(model, own) for (model, one), own in benchmark.answer_checks.items() if one == grader]
            found = [(REFERENCE, "", check, check.criterion not in unused) for check in checks]
            found += [(ANSWER, "", check, check.criterion not in unused) for check in together]
            found += [(ANSWER, model, check, False) for model, own in missed for check in own if check.below(*floor)]
            rows += [
                GraderCheckRow(benchmark=name, grader=grader, planted_in=place, model=model, used=used, **_cells(check, study))
                for place, model, check, used in found
            ]
    return rows


def _cells(check: EditCheck, study: Study) -> Cells:
    low, high = check.interval(study.settings.confidence)
    floor = study.grader_floor
    return {
        "criterion": check.criterion,
        "edit": check.edit,
        "must": check.must,
        "n_patients": check.n,
        "detected": check.detected / check.n if check.n else None,
        "low": low if check.n else None,
        "high": high if check.n else None,
        "base_failed": check.base_failed / check.n if check.n else None,
        "missing": check.missing,
        "floor": floor,
        "against_floor": BELOW if high < floor else REACHED if low >= floor else OPEN,
    }


def planted_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say which graders are not used for what, and which were not tested."""
    rows = [row for row in tables["grader_checks"] if row["n_patients"] != 0]
    parts = []
    for grader, config in study.graders.items():
        if not any(row["grader"] == grader for row in rows):
            asked = any(row["grader"] == grader for row in tables["grader_checks"])
            parts.append(f"{config.title} {'gave no grade of planted errors' if asked else 'was not tested'}")
            continue
        for benchmark in study.benchmarks:
            where = f" in {benchmark}" if len(study.benchmarks) > 1 else ""
            parts += not_used(study, tables, benchmark, grader, where)
            parts += _weak_together([row for row in rows if (row["benchmark"], row["grader"]) == (benchmark, grader)], config.title, where)
    floor = percent(study.grader_floor)
    if not parts:
        parts.append(f"no grader is shown to detect less than {floor} of any planted error")
    opened = sum(row["against_floor"] == OPEN for row in rows)
    text = f"{begun('; '.join(parts), study)}."
    if opened:
        text += f" Not shown to reach {floor}: {opened} of {counted(len(rows), 'comparison')}."
    sizes = []
    for benchmark in study.benchmarks:
        if own := [row for row in rows if row["benchmark"] == benchmark and row["n_patients"]]:
            sizes.append((benchmark, f"up to {counted(max(row['n_patients'] for row in own), cluster_of(own))} per planted error"))
    return Takeaway(text, by_benchmark(sizes) if sizes else "0 planted errors")


def not_used(study: Study, tables: Tables, benchmark: str, grader: str, where: str = "") -> list[str]:
    """Say in clauses for which criteria a grader is not used in a benchmark: for all answers, and for those of single models."""
    rows = [row for row in tables["grader_checks"] if (row["benchmark"], row["grader"]) == (benchmark, grader)]
    missed = [row for row in rows if row["against_floor"] == BELOW and (row["planted_in"] == REFERENCE or row["model"])]
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
    known = [row for row in rows if row["detected"] is not None]
    worst = min(known, key=lambda row: (row["high"], row["detected"]), default=None)
    return f": of one planted error it detects {percent_with_span(worst['detected'], worst['low'], worst['high'])}" if worst else ""


GRADER_CHECKS = Table(
    name="grader_checks",
    row=GraderCheckRow,
    rows=of_study(grader_check_rows),
    suppression=Suppression("benchmark grader planted_in model in_reference_pool criterion edit must floor against_floor used"),
    takeaways={"planted": planted_takeaway},
)


@dataclass(frozen=True, kw_only=True)
class GraderRow(ModelRow):
    """Grades of one grader for one model."""

    grader: str
    ok: int | None = None
    failed: int | None = None
    skipped: int | None = None
    not_graded: int | None = None
    mean_core_diagnosis: float | None = None
    mean_main_condition: float | None = None
    kappa_with_first: float | None = None
    kappa_with_first_low: float | None = None
    kappa_with_first_high: float | None = None
    agreement_with_first: float | None = None
    note: str | None = None


def grader_rows(study: Study) -> list[GraderRow]:
    """Rows of `graders.csv`: counts and means of each grader, and its agreement with the first one on pass or fail (Cohen's kappa, and raw)."""
    rows = []
    for benchmark in study.benchmarks.values():
        for model in study.models:
            first = _verdicts(benchmark, model, next(iter(study.graders), ""))
            rows += [
                GraderRow(
                    **(
                        _grader_row(benchmark, model, grader, first, settings=study.settings, is_first=grader == next(iter(study.graders)))
                        | _other_task(study, grader)
                    )
                )
                for grader in study.graders
                if benchmark.grades[model, grader]
            ]
    return rows


def _other_task(study: Study, grader: str) -> Cells:
    """Note the task of a grader that does not judge diagnoses, so that their absence does not look like a failure."""
    config = study.graders[grader]
    seats = [study.all_graders[member] for member in config.members] or [config]
    tasks = {seat.task for seat in seats if seat.kind == "llm"} - {"diagnosis"}
    return {"note": f"judges {tasks.pop()}, no diagnosis"} if tasks else {}


def _verdicts(benchmark: BenchmarkStudy, model: str, grader: str) -> dict[Key, bool]:
    grades = benchmark.grades.get((model, grader), [])
    return {response_key(grade): grade.value >= 0.5 for grade in grades if grade.criterion == CORE_DIAGNOSIS and grade.value is not None}


def _grader_row(
    benchmark: BenchmarkStudy, model: str, grader: str, first: dict[Key, bool], *, settings: IntervalSettings, is_first: bool
) -> Cells:
    grades, own = benchmark.grades[model, grader], _verdicts(benchmark, model, grader)
    states = Counter(grade.state for grade in grades)
    # agreement over the answers that both graders judged
    shared = own.keys() & first.keys()
    values = {
        f"mean_{name}": [grade.value for grade in grades if grade.criterion == name and grade.value is not None]
        for name in (CORE_DIAGNOSIS, MAIN_CONDITION)
    }
    return {
        "benchmark": benchmark.name,
        "model": model,
        "grader": grader,
        "ok": states[GradeState.OK],
        "failed": states[GradeState.FAILED],
        "skipped": states[GradeState.SKIPPED],
        "not_graded": states[GradeState.NOT_GRADED],
        **{name: float(np.mean(known)) if known else None for name, known in values.items()},
        **(with_ends({"kappa_with_first": _kappa(benchmark, own, first, settings)[:3]}) if not is_first and shared else {}),
        "agreement_with_first": sum(own[key] == first[key] for key in shared) / len(shared) if shared else None,
        "note": _left_to_readers(benchmark, model, own) if states[GradeState.OK] else "gave no grade",
    }


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


def graders_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise who graded, and how far the later graders agree with the first."""
    rows = tables["graders"]
    given, failed = (sum(row[name] or 0 for row in rows) for name in ("ok", "failed"))
    active = [name for name in study.all_graders if any(row["grader"] == name and row["ok"] for row in rows)]
    silent = [name for name in study.all_graders if name not in active and any(row["grader"] == name for row in rows)]
    if not active:
        return Takeaway("No answer has been graded.", "0 grades")
    parts = [
        f"{study.all_graders[name].title} gave {counted(sum(row['ok'] for row in rows if row['grader'] == name), 'grade')}"
        for name in active
    ]
    later = [row for row in rows if row["grader"] in active[1:] and row["agreement_with_first"] is not None]
    if later:
        kappas = [row["kappa_with_first"] for row in later if row.get("kappa_with_first") is not None]
        beyond = f"with kappa {decimal(min(kappas))} to {decimal(max(kappas))}" if kappas else "with a kappa that is not defined"
        raw = [row["agreement_with_first"] for row in later]
        parts.append(f"the others agree with the first {beyond} (raw: {percent(min(raw))} to {percent(max(raw))} of the answers)")
    parts += [f"{study.all_graders[name].title} gave none" for name in silent]
    missing = f", {failed:,} failed" if failed else ""
    return Takeaway(f"{begun('; '.join(parts), study)}.", f"{counted(given, 'grade')}{missing}, over all arms")


GRADERS = Table(
    name="graders",
    row=GraderRow,
    rows=of_study(grader_rows),
    suppression=Suppression(f"{MODEL} grader note", mark="ok", patients=""),
    takeaways={"graders": graders_takeaway},
)
