"""Who was asked about: the case flow, the cases, the audit and the cohort."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.records.case import State
from neuralmedbench.records.items import DIAGNOSES, Kind
from neuralmedbench.tables.study import BenchmarkStudy, Study

QUARANTINE_STAGES = ("ingest", "deidentify", "normalise", "slices")
QUESTION_STEPS = ("refused_import", "quarantined_picture", "example")

Row = dict[str, Any]
Fate = tuple[str, str, str, int, int]
"""Unit (file or series), step, reason, how many, and the number of the case."""


def case_flow_rows(study: Study) -> list[Row]:
    """Rows of `case_flow.csv`: cases (or pictures) listed, excluded, quarantined by stage and reason, used; then questions likewise.

    The questions of an imported data set are those that its import found: refused by it, left out because a picture of theirs was quarantined
    (`quarantined_picture`, with the picture's reason), kept as an example, used.
    """
    rows: list[Row] = []
    for name, benchmark in study.benchmarks.items():
        unit = "picture" if benchmark.config.kind is Kind.PICTURES and not benchmark.config.has_cases else "case"
        rows += [{"benchmark": name, "unit": unit} | row for row in _flow(_fates(benchmark))]
        if benchmark.questions:
            rows += [{"benchmark": name, "unit": "question"} | row for row in _flow(benchmark.questions)]
    return rows


def _flow(fates: Sequence[tuple[str, str]]) -> list[Row]:
    rows: list[Row] = [{"step": "listed", "reason": "", "n": len(fates)}]
    for step in ("excluded", *(f"quarantined_{stage}" for stage in QUARANTINE_STAGES), *QUESTION_STEPS):
        reasons = Counter(reason for found, reason in fates if found == step)
        rows += [{"step": step, "reason": reason, "n": number} for reason, number in sorted(reasons.items())]
    return [*rows, {"step": "used", "reason": "", "n": sum(step == "used" for step, _ in fates)}]


def _fates(benchmark: BenchmarkStudy) -> list[tuple[str, str]]:
    if benchmark.config.has_cases:
        return [(_step(case), case["reason"]) for case in benchmark.flow]
    if benchmark.config.kind is Kind.PICTURES:
        return [("used" if picture.state is State.OK else "quarantined_deidentify", picture.reason) for picture in benchmark.pictures]
    return [("used", "") for _ in {item.case_id for item in benchmark.items}]


def _step(case: dict[str, Any]) -> str:
    if case["excluded"]:
        return "excluded"
    return "used" if case["state"] == State.OK else f"quarantined_{case['quarantined_by']}"


def file_flow_rows(study: Study) -> list[Row]:
    """Rows of `file_flow.csv`: what became of every raw file of the cases that were read, and which series were left out later.

    Files are `listed` = `set_aside` (by ingest, with the reason) + `quarantined_<stage>` (their case was) + `used`; of pictures every one is a
    file. Series that a later stage left out of a case that goes on are rows of their own: their files count as used.
    """
    rows: list[Row] = []
    for name, benchmark in study.benchmarks.items():
        if benchmark.config.has_cases:
            found = [*_files_of_cases(benchmark), *_series_left_out(benchmark)]
        elif benchmark.config.kind is Kind.PICTURES:
            found = [("file", step, reason, 1, number) for number, (step, reason) in enumerate(_fates(benchmark))]
        else:
            continue
        listed = [(unit, "listed", "", n, case) for unit, _, _, n, case in found if unit == "file"]
        rows += [{"benchmark": name} | row for row in _summed([*listed, *found])]
    return rows


def _files_of_cases(benchmark: BenchmarkStudy) -> Iterator[Fate]:
    for number, case in enumerate(benchmark.flow):
        for reason, n in case["raw_files"].items():
            step = _step(case) if reason == "used" else "set_aside"
            yield "file", step, reason if step == "set_aside" else case["reason"], n, number


def _series_left_out(benchmark: BenchmarkStudy) -> Iterator[Fate]:
    for number, case in enumerate(benchmark.flow):
        for reason in case["set_aside"] if _step(case) == "used" else ():
            yield "series", "set_aside", reason, 1, number


def _summed(fates: Iterable[Fate]) -> list[Row]:
    """Sum fates that are alike, in the order in which the data travels; `cases` counts the cases (or pictures) that they belong to."""
    order = {
        step: place for place, step in enumerate(("listed", "set_aside", *(f"quarantined_{stage}" for stage in QUARANTINE_STAGES), "used"))
    }
    sums: Counter[tuple[str, str, str]] = Counter()
    cases: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for unit, step, reason, n, case in fates:
        sums[unit, step, reason] += n
        cases[unit, step, reason].add(case)
    keys = sorted(sums, key=lambda key: (key[0], order[key[1]], -sums[key], key[2]))
    return [
        {"unit": unit, "step": step, "reason": reason, "n": sums[unit, step, reason], "cases": len(cases[unit, step, reason])}
        for unit, step, reason in keys
    ]


def case_rows(study: Study) -> list[Row]:
    """Rows of `cases.csv`: every case of the table; for pictures and text the cases that have items."""
    rows: list[Row] = []
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
    return rows


def audit_rows(study: Study) -> list[Row]:
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
        } | dict(sorted(audit.checks.items()))
        rows += [head | {"check": check, "value": value} for check, value in checks.items()]
    return rows


def score_rows(study: Study) -> list[Row]:
    """Rows of `deidentification.csv`: of what was planted in phantoms, how much was treated as it had to be.

    Checks of one patient are alike, as all files of a series share their header: the exact interval is that of the share of patients for whom
    every check was right.
    """
    rows = []
    for name, benchmark in study.benchmarks.items():
        for score in benchmark.audit.score:
            low, high = clopper_pearson(score.patients_right, score.patients, study.settings.confidence)
            rows.append(
                {"benchmark": name}
                | {key: getattr(score, key) for key in ("place", "action", "category", "required", "right", "patients", "patients_right")}
                | {"share": score.right / score.required, "patients_low": low, "patients_high": high}
            )
    return rows


def cohort_rows(study: Study) -> list[Row]:
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
            {"benchmark": name, "variable": variable, "value": value, "n": number}
            for variable, tally in tallies.items()
            for value, number in sorted(tally.items())
        ]
    return rows
