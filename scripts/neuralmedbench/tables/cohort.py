"""Who was asked about: `cases.csv` and `cohort.csv`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.records.words import capital, counted, listing
from neuralmedbench.tables.declare import ALL, Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, by_benchmark, whole_size


@dataclass(frozen=True, kw_only=True)
class CaseStateRow(ResultRow):
    """One case."""

    benchmark: str
    case_id: str
    patient_id: str | None = None
    state: str | None = None
    quarantined_by: str | None = None
    reason: str | None = None
    sequences: str | None = None
    n_items: int | None = None


def case_rows(study: Study) -> list[CaseStateRow]:
    """Rows of `cases.csv`: every case of the table; for pictures and text the cases that have items."""
    rows: list[Cells] = []
    for name, benchmark in study.benchmarks.items():
        number = Counter(item.case_id for item in benchmark.items)
        if benchmark.config.has_cases:
            keys = ("case_id", "patient_id", "state", "quarantined_by", "reason")
            rows += [
                {"benchmark": name, "sequences": " ".join(case["sequences"]), "n_items": number[case["case_id"]]}
                | {key: case[key] for key in keys}
                | ({"state": "excluded"} if case["excluded"] else {})
                for case in sorted(benchmark.flow, key=lambda case: str(case["case_id"]))
            ]
            continue
        patients = {item.case_id: item.patient_id for item in benchmark.items}
        sequences: dict[str, set[str]] = {case: set() for case in patients}
        for item in benchmark.items:
            sequences[item.case_id] |= {image.sequence for image in item.images}
        rows += [
            {"benchmark": name, "case_id": case, "patient_id": patients[case], "state": "ok", "n_items": number[case]}
            | {"sequences": " ".join(sorted(sequences[case] - {""}))}
            for case in sorted(patients)
        ]
    return [CaseStateRow(**row) for row in rows]


@dataclass(frozen=True, kw_only=True)
class CohortRow(ResultRow):
    """How many items are of one kind."""

    benchmark: str
    variable: str
    value: str | None = None
    n: int | None = None


def cohort_rows(study: Study) -> list[CohortRow]:
    """Rows of `cohort.csv`: items by level, family, diagnosis and sequence."""
    rows = []
    for name, benchmark in study.benchmarks.items():
        answers = {gold.item_id: gold.answer for gold in benchmark.gold}
        tallies = {
            "level": Counter(str(item.level) for item in benchmark.items),
            "family": Counter(str(item.family) for item in benchmark.items),
            "diagnosis": Counter(answers[item.item_id] for item in benchmark.items if item.item_id in answers and item.family in DIAGNOSES),
            "sequence": Counter(sequence for item in benchmark.items for sequence in {image.sequence for image in item.images}),
        }
        rows += [
            CohortRow(benchmark=name, variable=variable, value=value, n=number)
            for variable, tally in tallies.items()
            for value, number in sorted(tally.items())
        ]
    return rows


def cases_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how many cases no model, and every model, gets right under the full request."""
    never = always = total = 0
    for benchmark in study.benchmarks.values():
        for passes, answers in _by_case(study, benchmark.name).values():
            total, never, always = total + 1, never + (passes == 0), always + (passes == answers)
    if not total:
        return Takeaway("No case has a scored answer.", "0 cases")
    told = f"{never} of {counted(total, 'case')} no model ever passes, {always} every model always does."
    return Takeaway(told, f"{counted(total, 'case')} with a scored answer; {whole_size(study, tables)}")


def _by_case(study: Study, benchmark: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for model, rows in study.benchmarks[benchmark].scores.items():
        if model in study.readers:
            continue
        for row in rows:
            if (row.arm, row.strategy) == ("full", "direct") and row.passed is not None:
                passes, answers = found.get(row.case_id, (0, 0))
                found[row.case_id] = (passes + row.passed, answers + 1)
    return found


def cohort_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say how many items, cases and patients there are, and how their diagnosis was established."""
    told, size = [], []
    for name, benchmark in study.benchmarks.items():
        patients = len({item.patient_id for item in benchmark.items})
        how = sorted({gold.established for gold in benchmark.gold} - {""})
        told.append(
            (
                name,
                f"the reference comes from {listing([f'“{one}”' for one in how])}"
                if how
                else "how the reference was established is not recorded",
            )
        )
        size.append((name, f"{counted(len(benchmark.items), 'item')}, {counted(patients, 'patient')}"))
    return Takeaway(f"{capital(by_benchmark(told))}." if told else "No items.", by_benchmark(size) or "0 items")


CASES = Table(
    name="cases",
    row=CaseStateRow,
    rows=of_study(case_rows),
    suppression=Suppression("benchmark", each=True),
    takeaways={"cases": cases_takeaway},
)

COHORT = Table(
    name="cohort",
    row=CohortRow,
    rows=of_study(cohort_rows),
    suppression=Suppression(
        "benchmark variable value",
        mark="n",
        patients="",
        labels=lambda row: [(f"{ALL} items", ""), (f"cohort {row['variable']}", row["value"])],
    ),
    takeaways={"cohort": cohort_takeaway},
)
