"""The de-identification audit and its score on phantoms: `deid_audit.csv` and `deidentification.csv`."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.records.results import PATIENT
from neuralmedbench.records.words import counted, listing, percent
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

STATED = "items whose own text states the answer (arm full, not accepted)"


@dataclass(frozen=True, kw_only=True)
class DeidAuditRow(ResultRow):
    """One check of the audit of one benchmark."""

    benchmark: str
    profile: str | None = None
    kind: str | None = None
    state: str | None = None
    check: str
    value: int | None = None


def audit_rows(study: Study) -> list[DeidAuditRow]:
    """Rows of `deid_audit.csv`: names of checks and counts, never values."""
    rows = []
    for name, benchmark in study.benchmarks.items():
        audit = benchmark.audit
        head = {"benchmark": name, "profile": audit.profile, "kind": audit.kind, "state": audit.state}
        checks = {
            "identifiers left after cleaning": audit.leaks,
            "files covered": len(audit.covered),
            "items whose answer a text names": benchmark.leaking,
            "of them accepted with a reason": benchmark.leaks_accepted,
            STATED: benchmark.stated,
        } | dict(sorted(audit.checks.items()))
        rows += [DeidAuditRow(**head, check=check, value=value) for check, value in checks.items()]
    return rows


def stated_badges(study: Study) -> list[Cells]:
    """Return a warning badge that names the benchmarks with items whose own text states the answer; without numbers, as it is always shown."""
    titles = [benchmark.config.title for benchmark in study.benchmarks.values() if benchmark.stated]
    return [{"name": "Answer in the question", "state": "warn", "text": f"some items of {listing(titles)}"}] if titles else []


def stated_sentences(study: Study, tables: Tables) -> list[str]:
    """State for every benchmark how many items state their answer; the page lists which, in the folder of leaks."""
    found = []
    for row in tables["deid_audit"]:
        if row["check"] == STATED and row["value"] and row["benchmark"] in study.benchmarks:
            benchmark, number = study.benchmarks[row["benchmark"]], row["value"]
            found.append(
                f"{benchmark.config.title}: {number:,} of {counted(len(benchmark.items), 'item')} {'states' if number == 1 else 'state'} the"
                f" answer in the text that is sent ({percent(number / len(benchmark.items))}), so reading may be enough for them; which ones is"
                f" told by data/leaks/{row['benchmark']}.html."
            )
    return found


@dataclass(frozen=True, kw_only=True)
class DeidentificationRow(ResultRow):
    """One kind of planted identifier, and how often it was treated as required."""

    benchmark: str
    place: str | None = None
    action: str | None = None
    category: str | None = None
    required: int | None = None
    right: int | None = None
    share: float | None = None
    patients: int | None = None
    patients_right: int | None = None
    patients_low: float | None = None
    patients_high: float | None = None


def score_rows(study: Study) -> list[DeidentificationRow]:
    """Rows of `deidentification.csv`: the share of identifiers planted in phantoms that was treated as required.

    Checks of one patient are dependent, as all files of a series share their header, so the exact interval is that of the share of patients
    for whom every check was right.
    """
    rows: list[Cells] = []
    for name, benchmark in study.benchmarks.items():
        for score in benchmark.audit.score:
            # patients are independent, checks within a patient are not
            low, high = clopper_pearson(score.patients_right, score.patients, study.settings.confidence)
            rows.append(
                {"benchmark": name}
                | {key: getattr(score, key) for key in ("place", "action", "category", "required", "right", "patients", "patients_right")}
                | {"share": score.right / score.required, "patients_low": low, "patients_high": high}
            )
    return [DeidentificationRow(**row) for row in rows]


def privacy_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise whether the audits passed, and how many planted identifiers were removed."""
    audits = [benchmark.audit for benchmark in study.benchmarks.values()]
    checked = [audit.state == "passed" for audit in audits if not audit.unchecked]
    unchecked = [benchmark.config.title for benchmark in study.benchmarks.values() if benchmark.audit.unchecked]
    parts = [f"The audit passed for {sum(checked)} of {counted(len(checked), 'benchmark')}"] if checked or not unchecked else []
    if unchecked:
        parts.append(f"{'no' if parts else 'No'} check ran on {listing(unchecked)}: public data, used as published")
    for row in tables["deidentification"]:
        if (row["place"], row["action"]) == ("all", "removals"):
            parts.append(f"on {row['benchmark']}, {row['right']:,} of {row['required']:,} planted identifiers were removed")
    with_patients = [benchmark for benchmark in study.benchmarks.values() if benchmark.cluster == PATIENT]
    patients = len({item.patient_id for benchmark in with_patients for item in benchmark.items})
    kinds = listing(sorted({audit.kind for audit in audits})) if audits else "nobody"
    return Takeaway(f"{'; '.join(parts)}.", f"{counted(len(audits), 'benchmark')}, {counted(patients, 'patient')}; subjects: {kinds}")


DEID_AUDIT = Table(
    name="deid_audit",
    row=DeidAuditRow,
    rows=of_study(audit_rows),
    suppression=Suppression("benchmark profile kind state check", mark="value", patients="value", whole=False),
)

DEIDENTIFICATION = Table(
    name="deidentification",
    row=DeidentificationRow,
    rows=of_study(score_rows),
    suppression=Suppression("benchmark place action category", mark="patients", patients="patients", of_patients=False),
    takeaways={"privacy": privacy_takeaway},
)
