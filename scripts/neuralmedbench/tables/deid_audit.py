"""The de-identification audit and its score on phantoms: `deidentification.csv`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.records.results import PATIENT
from neuralmedbench.records.words import counted, listing, percent
from neuralmedbench.tables.declare import Cells, Count, Number, ResultRow, Suppression, Table, Tables, Takeaway, Text, of_benchmarks
from neuralmedbench.tables.study import BenchmarkStudy, Study

STATED = "items whose own text states the answer (arm full, not accepted)"


AUDIT = "audit"
"""In the column `place`: the counts of the audit; the other places are those in which planted identifiers were looked for."""


@dataclass(frozen=True, kw_only=True)
class DeidentificationRow(ResultRow):
    """A count of the audit of one benchmark, or one kind of planted identifier and how often it was treated as required."""

    benchmark: str
    profile: Text = None
    kind: Text = None
    state: Text = None
    place: str
    action: str = ""
    check: str
    count: Count = None
    required: Count = None
    share: Number = None
    patients: Count = None
    patients_right: Count = None
    patients_low: Number = None
    patients_high: Number = None


@of_benchmarks
def deidentification_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[DeidentificationRow]:
    """Rows of `deidentification.csv`: counts of the audits, and the share of identifiers planted in phantoms that was treated as required.

    Nothing is named but checks. Checks of one patient are dependent, as all files of a series share their header, so the exact interval is
    that of the share of patients for whom every check was right.
    """
    audit = benchmark.audit
    head: Cells = {"benchmark": benchmark.name, "profile": audit.profile, "kind": audit.kind, "state": audit.state}
    checks = {
        "identifiers left after cleaning": audit.leaks,
        "files covered": len(audit.covered),
        "items whose answer a text names": benchmark.leaking,
        "of them accepted with a reason": benchmark.leaks_accepted,
        STATED: benchmark.stated,
    } | dict(sorted(audit.checks.items()))
    for check, count in checks.items():
        yield DeidentificationRow(**head, place=AUDIT, check=check, count=count)
    for score in audit.score if audit.kind == "phantom" else ():
        # patients are independent, checks within a patient are not
        low, high = clopper_pearson(score.patients_right, score.patients, study.settings.confidence)
        yield DeidentificationRow(
            **head,
            place=score.place,
            action=score.action,
            check=score.category,
            count=score.right,
            required=score.required,
            share=score.right / score.required,
            patients=score.patients,
            patients_right=score.patients_right,
            patients_low=low,
            patients_high=high,
        )


def audited(study: Study) -> tuple[list[bool], list[str]]:
    """Return whether each audit passed whose checks ran, and the titles of the benchmarks of which none ran."""
    checked = [one.audit.state == "passed" for one in study.benchmarks.values() if not one.audit.unchecked]
    return checked, [one.config.title for one in study.benchmarks.values() if one.audit.unchecked]


def stated_badges(study: Study) -> list[Cells]:
    """Return a warning badge that names the benchmarks with items whose own text states the answer; without numbers, as it is always shown."""
    titles = [benchmark.config.title for benchmark in study.benchmarks.values() if benchmark.stated]
    return [{"name": "Answer in the question", "state": "warn", "text": f"some items of {listing(titles)}"}] if titles else []


def stated_sentences(study: Study, tables: Tables) -> list[str]:
    """State for every benchmark how many items state their answer; the page lists which, in the folder of leaks."""
    found = []
    for row in tables["deidentification"]:
        if row["check"] == STATED and row["count"] and row["benchmark"] in study.benchmarks:
            benchmark, number = study.benchmarks[row["benchmark"]], row["count"]
            found.append(
                f"{benchmark.config.title}: {number:,} of {counted(len(benchmark.items), 'item')} {'states' if number == 1 else 'state'} the"
                f" answer in the text that is sent ({percent(number / len(benchmark.items))}), so reading may be enough for them; which ones is"
                f" told by data/leaks/{row['benchmark']}.html."
            )
    return found


def privacy_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise whether the audits passed, and how many removal checks of planted identifiers passed."""
    audits = [benchmark.audit for benchmark in study.benchmarks.values()]
    checked, unchecked = audited(study)
    parts = [f"The audit passed for {sum(checked)} of {counted(len(checked), 'benchmark')}"] if checked or not unchecked else []
    if unchecked:
        parts.append(f"{'no' if parts else 'No'} check ran on {listing(unchecked)}: public data, used as published")
    for row in tables["deidentification"]:
        if (row["place"], row["action"]) == ("all", "removals"):
            parts.append(f"on {row['benchmark']}, {row['count']:,} of {row['required']:,} removal checks of planted identifiers passed")
    with_patients = [benchmark for benchmark in study.benchmarks.values() if benchmark.cluster == PATIENT]
    patients = len({item.patient_id for benchmark in with_patients for item in benchmark.items})
    kinds = listing(sorted({audit.kind for audit in audits})) if audits else "nobody"
    return Takeaway(f"{'; '.join(parts)}.", f"{counted(len(audits), 'benchmark')}, {counted(patients, 'patient')}; subjects: {kinds}")


TABLE = Table(
    name="deidentification",
    row=DeidentificationRow,
    rows=deidentification_rows,
    # rows about planted identifiers are of phantoms, of whom nothing is hidden
    suppression=Suppression(
        "benchmark profile kind state place action check", mark="count", patients="count", whole=False, of_patients=False
    ),
    takeaways={"privacy": privacy_takeaway},
)
