"""Planted errors that each grader detects, and the criteria for which it is not used: `grader_checks.csv`."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.records.words import capital, counted, listing, percent, percent_with_span
from neuralmedbench.scoring.planted.checks import EditCheck, unused_criteria
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, by_benchmark, cluster_of

BELOW, OPEN, REACHED = "below", "open", "reached"
"""The interval lies below the floor, holds it, or lies at or above it."""


@dataclass(frozen=True, kw_only=True)
class GraderCheckRow(ResultRow):
    """What one grader made of one planted error, for one criterion."""

    benchmark: str
    grader: str
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
    the edit. `used` is about the criterion: false if the interval of one of its edits lies below the floor.
    """
    rows = []
    for name, benchmark in study.benchmarks.items():
        for grader in study.all_graders:
            checks = benchmark.checks.get(grader, [])
            unused = unused_criteria(checks, study.grader_floor, study.settings.confidence)
            rows += [
                GraderCheckRow(benchmark=name, grader=grader, used=check.criterion not in unused, **_cells(check, study))
                for check in checks
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
    rows = [row for row in tables["grader_checks"] if row["n_patients"]]
    parts = []
    for grader, config in study.graders.items():
        own = [row for row in rows if row["grader"] == grader]
        if not own:
            asked = any(row["grader"] == grader for row in tables["grader_checks"])
            parts.append(f"{config.title} {'gave no grade of planted errors' if asked else 'was not tested'}")
            continue
        for benchmark in study.benchmarks:
            misses = [row for row in own if row["benchmark"] == benchmark and row["against_floor"] == BELOW]
            if misses:
                unused = listing([name.replace("_", " ") for name in dict.fromkeys(row["criterion"] for row in misses)])
                worst = min(misses, key=lambda row: (row["high"], row["detected"]))
                share = percent_with_span(worst["detected"], worst["low"], worst["high"])
                where = f" in {benchmark}" if len(study.benchmarks) > 1 else ""
                parts.append(f"{config.title} is not used for {unused}{where}: of one planted error it detects {share}")
    floor = percent(study.grader_floor)
    if not parts:
        parts.append(f"no grader is shown to detect less than {floor} of any planted error")
    opened = sum(row["against_floor"] == OPEN for row in rows)
    text = f"{capital('; '.join(parts))}."
    if opened:
        text += f" Not shown to reach {floor}: {opened} of {counted(len(rows), 'comparison')}."
    sizes = []
    for benchmark in study.benchmarks:
        if own := [row for row in rows if row["benchmark"] == benchmark]:
            sizes.append((benchmark, f"up to {counted(max(row['n_patients'] for row in own), cluster_of(own))} per planted error"))
    return Takeaway(text, by_benchmark(sizes) if sizes else "0 planted errors")


TABLE = Table(
    name="grader_checks",
    row=GraderCheckRow,
    rows=of_study(grader_check_rows),
    suppression=Suppression("benchmark grader criterion edit must floor against_floor used"),
    takeaways={"planted": planted_takeaway},
)
